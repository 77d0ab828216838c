/* What an adversary may cost the drivers of a simulated run; a part of the auditor, used in seeds with an adversary only.
 *
 * Bounds, by the name that a failure prints:
 *   unbegun      images of the adversary's sessions for which it sent nothing where they join: at most
 *                aeron.spark.driver.images.unbegun.max in a driver
 *   storage      the log of an adversary's image has two pages, and two more for each datagram that it sent for it; where a
 *                stream is unreliable, one for each window that a frame is ahead; and when data arrived where it joins, the
 *                320 KiB that the driver allocates ahead. No such log has longer terms than
 *                aeron.spark.driver.image.term.length.max
 *   errors       texts take three quarters of a driver's error log at most: half for errors that peers cause, the rest for its
 *                own
 *   descriptors  the process has as many as when its drivers had started, and a few
 *   resent       a publication resends two terms in ten milliseconds; one of a group, one term for each of its resends
 *                (max-resend)
 *   cycle        in one duty cycle a driver sends at most a batch, the resends of each publication to each receiver, and twice
 *                what it received; its sockets bound what it receives
 *   amplified    bytes to addresses without an honest node are less than twice what the adversary sent, plus the status
 *                messages, NAKs and round trip requests of all images, SETUPs and heartbeats to the destinations that the
 *                adversary added, and with the resolver, rounds of names
 *   group        what the adversary sends to another group at the port of a stream makes no image: sockets take their own
 *                group's datagrams only
 *   copied       messages go to the ports of their stream only: a status message that names no session, or requests a SETUP,
 *                proves nothing
 *
 * All bounds are counts, not times, so they are the same in each run of a seed. One thread, simulated time. */
#ifndef AS_SIM_AUDITOR_BOUNDS_H
#define AS_SIM_AUDITOR_BOUNDS_H

#include "sim_net.h"

/* Ids of the sessions that the adversary invents, so that every check recognises them. */
#define SIM_HOSTILE_SESSIONS 16384
#define SIM_HOSTILE_SESSION(i) (0x5A500000 | (i))
#define SIM_STRAY_SESSION SIM_HOSTILE_SESSION(SIM_HOSTILE_SESSIONS - 1) /* of what goes to other groups than the stream's */
#define AUDITOR_UNRELIABLE_MAX 4
#define SIM_PLANTED_MAX 8 /* destinations that it gives dynamic publications */

static inline bool sim_is_hostile_session(int32_t session_id)
{
    return SIM_HOSTILE_SESSION(0) == (session_id & ~(SIM_HOSTILE_SESSIONS - 1));
}

typedef struct auditor_limits
{
    int32_t node_count;
    int32_t flow_count;
    int32_t receivers_max;     /* of a publication */
    int64_t images_unbegun_max;
    int32_t unreliable[AUDITOR_UNRELIABLE_MAX]; /* stream ids, 0: no more */
    int64_t window_length;     /* of receivers: the least */
    int64_t image_term_length_max;
    int64_t max_resend;
    int64_t status_message_ns;
    int64_t rttm_ns;           /* between two round trip requests of an image; 0: none are sent */
    int64_t gossip_interval_ns; /* 0: no resolver */
} auditor_limits;

typedef struct auditor_hostile
{
    int32_t datagrams; /* of data, that some socket got */
    int64_t ahead;     /* bytes, from where it joins; heartbeats, too */
    bool has_begun;    /* one of them where it joins */
} auditor_hostile;

typedef struct auditor_bounds
{
    bool is_on;
    auditor_limits limits;
    auditor_hostile sessions[SIM_HOSTILE_SESSIONS];
    asi_address planted[SIM_PLANTED_MAX];
    int32_t planted_count;
    int64_t hostile_bytes;   /* sent, times the sockets that got them */
    int64_t stranger_bytes;  /* sent by drivers to addresses of nobody */
    int64_t allowed_bytes;
    int64_t resent[SIM_NET_MAX_HOSTS]; /* at the last check, by driver */
    int64_t last_look_ns;
    int64_t looks;
    int32_t descriptors;
    int32_t most_unbegun;
} auditor_bounds;

typedef struct auditor auditor;

void auditor_bounds_open(auditor *a, const auditor_limits *limits);
/* The adversary sent a datagram that `sockets` got. */
void auditor_on_injected(auditor *a, int32_t length, int32_t sockets);
/* A message of a session of its own, or a heartbeat, so many bytes ahead of where it joins. */
void auditor_on_hostile_frame(auditor *a, int32_t session_id, int64_t ahead, bool is_heartbeat);
void auditor_on_planted(auditor *a, const asi_address *source);
/* sim_spy. */
void auditor_on_sent(auditor *a, const sim_sighting *sighting);
/* A driver has done a duty cycle; `before`: its host as it was. */
void auditor_on_cycle(auditor *a, int32_t driver, const sim_host *before);
/* Called often; it checks every few milliseconds. */
void auditor_look_at_bounds(auditor *a);

#endif
