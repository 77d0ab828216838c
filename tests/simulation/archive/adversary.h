/* An adversary without a login at the archive's control streams, over simulated time beside the honest client. The seed makes
 * it a network peer or a client of the same machine, and gives the archive logins or none. It knows names of users, the honest
 * client's messages (but no password), recording ids, and control session ids, which are counted up and easily guessed. It has
 * one login of its own, `guest`, that may query only.
 *
 *   connects      floods of wrong passwords, users that are challenged and never answer, unknown names, old versions; response
 *                 channels with huge terms, without sparse files, over the other medium, to others' streams, to itself
 *   answers       to its own challenges and to others'
 *   requests      of every kind, with session ids of the honest client, of its own unaccepted sessions, of the guest, and of
 *                 nobody
 *   tokens        guessed
 *   captured      earlier messages of the honest client, unchanged or with some bytes changed
 *   garbage       messages cut short, unknown templates, random bytes
 *
 * When its image is rejected it returns as another. siege.c checks what must hold. An archive without logins serves everybody
 * who connects, so there the adversary does not connect; it must then be unable to use another session, fill the log or
 * exhaust the archive. Its random numbers come from a generator of its own: seeds without it run as if it did not exist. */
#ifndef AS_SIM_ARCHIVE_ADVERSARY_H
#define AS_SIM_ARCHIVE_ADVERSARY_H

#include "aeron_spark/as_client.h"
#include "base/rand.h"
#include "codec/event.h"
#include "codec/request.h"

#define ADVERSARY_DOORS 4
#define ADVERSARY_CAPTURES 32
#define ADVERSARY_CAPTURE_CAPACITY 512
#define ADVERSARY_HEARD 16

#define ADVERSARY_CONTROL_PORT 8010
#define HONEST_RESPONSE_PORT 8500

typedef struct sim_world sim_world;

typedef struct adversary_capture
{
    uint8_t bytes[ADVERSARY_CAPTURE_CAPACITY];
    int64_t length;
} adversary_capture;

typedef struct world_adversary
{
    bool is_there;             /* in this seed; the next four are the seed's, too */
    bool has_logins;           /* the archive requires logins */
    bool is_local;             /* it speaks by IPC, else by UDP */
    bool is_visitor_local;     /* the honest client that comes in a siege does; the one that is always there speaks by IPC */
    bool shares_source;        /* it comes from the visitor's address */
    bool is_quiet;             /* it does nothing for now */
    bool is_guessing;          /* it sends passwords alone */
    int32_t weight;            /* messages of a burst, at most */
    asi_rand rand;
    as_client *client;
    as_publication *doors[ADVERSARY_DOORS];
    int64_t connected_ns[ADVERSARY_DOORS]; /* when each was connected last, or made */
    as_subscription *responses;
    as_fragment_assembler *assembler;
    int64_t heard[ADVERSARY_HEARD]; /* control sessions that answered it */
    int64_t heard_count;
    int64_t guest_session;     /* AS_NULL_VALUE: not logged in */
    int64_t guest_connect;     /* correlation id of its connect request */
    int64_t guest_retry_ns;
    adversary_capture captures[ADVERSARY_CAPTURES];
    int64_t capture_count;
    int64_t messages;          /* sent, of all kinds */
} world_adversary;

/* What this seed has, before the archive's settings are made. `share`: of a hundred seeds, those with an adversary. */
void adversary_choose(sim_world *world, int32_t share);
/* It goes, when the archive has ended or the driver does; it comes back by itself. */
void adversary_close(sim_world *world);
/* What it does in a cycle. */
void adversary_round(sim_world *world);
/* It sees a message of the honest client. */
void adversary_capture_request(sim_world *world, const asi_codec_request *request, const uint8_t *bytes, int64_t length);

#endif
