/* The auditor of a simulated run. It knows what was published and delivered, the datagrams that drivers took from the network,
 * and shared memory (counters). It knows no state of drivers and clients, so its verdict does not depend on the code that it
 * checks.
 *
 * Checks, by the name that a failure prints:
 *   bytes        each image delivers exactly the published bytes, in order, without gap; of an unreliable stream the delivered
 *                parts are right, and a driver that skipped some has counted a gap fill
 *   limit        no message begins at or beyond the publisher's limit; the limit is at most a window beyond consumption;
 *                the sender is not beyond its limit, nor its limit beyond what receivers have and a window
 *   back         positions in counters never decrease
 *   complete     when the network works again, every subscriber reaches the end of every stream
 *   eos          a stream that was closed while the network worked ends as such and at its last byte; a revoked one as revoked
 *   liveness     an image ends only for a reason: end, revocation, rejection, or silence for the image liveness timeout;
 *                and it does end after that
 *   connected    a publication is connected while status messages arrive, and no longer than the connection timeout without
 *   client       a dead client is removed after its liveness timeout and not before
 *   wire         no frame that a driver sends is one that a strict peer drops (auditor_wire.c)
 *   counters, files, sockets   closing leaves nothing behind
 *   and the limits of an adversary's cost, auditor_bounds.h. Streams that it starts itself are not checked: a subscriber may
 *               get them.
 *
 * The world owns it and reports to it (auditor_on_*); it reads shared memory in auditor_look. One thread, simulated time. */
#ifndef AS_SIM_AUDITOR_H
#define AS_SIM_AUDITOR_H

#include "aeron_spark/as_client.h"
#include "auditor_bounds.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "sim_net.h"

#define AUDITOR_MAX_DRIVERS SIM_NET_MAX_HOSTS
#define AUDITOR_MAX_STREAMS 128
#define AUDITOR_MAX_IMAGES 2048
#define AUDITOR_COUNTERS 8192
#define AUDITOR_MAX_FLOWS 8

/* The timeouts of the tables that the drivers run with. */
typedef struct auditor_times
{
    int64_t timer_interval_ns;
    int64_t client_liveness_ns;
    int64_t image_liveness_ns;
    int64_t connection_ns;
    int64_t linger_ns;
    int64_t status_message_ns;
    int64_t unblock_ns;
    int64_t slack_ns; /* simulated time between two checks, and pauses of a driver */
} auditor_times;

typedef struct auditor_message
{
    int64_t start;  /* position of its first frame */
    int64_t end;
    int64_t number; /* determines every byte; -1: an aborted claim, which ends as padding */
    int32_t length;
} auditor_message;

typedef enum auditor_end
{
    AUDITOR_OPEN,
    AUDITOR_CLOSED,  /* by its application, or with its client */
    AUDITOR_REVOKED,
    AUDITOR_LOST     /* with its driver */
} auditor_end;

/* One publication, by session and stream. */
typedef struct auditor_stream
{
    int32_t session_id;
    int32_t stream_id;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu_length;
    int64_t registration_id;
    int32_t driver;         /* that it was added to */
    bool is_plain_unicast;  /* one receiver, which alone decides */
    bool is_network;
    bool is_unicast;
    bool waits_for_all;     /* its flow control runs away from no receiver */
    bool follows_spies;     /* ssc: without receivers its sender goes where its spies are */
    bool has_eos;           /* its heartbeats announce the end */
    int64_t window_length;  /* the publisher's */
    int64_t first_position;
    int64_t position;       /* after the last message */
    auditor_message *messages; /* owned, by position */
    int64_t count;
    int64_t capacity;
    auditor_end end;
    int64_t ended_ns;
    int64_t max_received;   /* highest rcv-pos or consumption that any counter showed */
    int64_t max_limit;      /* highest snd-lmt */
    int64_t sender_position;    /* at the last check */
    int64_t publisher_limit;
    int64_t seen_since_ns;  /* its driver may have heard of it, and been answered, a few cycles before */
    int64_t last_status_ns; /* an ordinary status message reached the publisher's driver */
    int64_t last_end_status_ns; /* one with EOS, or an error frame */
} auditor_stream;

typedef enum auditor_why
{
    AUDITOR_LEAVES, /* the subscriber or its client closes or dies */
    AUDITOR_UNAVAILABLE
} auditor_why;

/* One image at one subscription. */
typedef struct auditor_image
{
    const void *subscription;
    int64_t correlation_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_length;
    int32_t initial_term_id;
    auditor_stream *stream; /* NULL: of an unknown session, a forged or stale SETUP */
    bool is_hostile;        /* the adversary's session */
    int32_t driver;
    int64_t join_position;
    int64_t cursor;         /* everything before was delivered */
    int64_t next;           /* index of the message at or after cursor */
    int64_t gaps;
    bool is_open;
    bool is_reliable;
    bool is_local;          /* ipc or spy: no receiver behind it */
    bool may_rest;          /* untethered */
    bool is_rejected;
    int64_t rejected_ns;    /* if so */
    int64_t since_ns;
    int64_t made_ns;        /* when the driver's image was first seen, maybe by another subscriber */
    int64_t stalled_until_ns; /* the subscriber took nothing until then */
} auditor_image;

typedef struct auditor_counter_memory
{
    int64_t registration_id;
    int64_t value;
    int32_t type_id;
    int32_t session_id; /* ids are used again, by the same subscription, too */
} auditor_counter_memory;

/* What was last heard of a session by a driver. */
typedef struct auditor_heard
{
    int32_t driver;
    int32_t session_id;
    int32_t stream_id;
    int64_t last_ns;
    int64_t last_honest_ns;    /* not by the adversary: its copies may keep an image alive and may be dropped */
    int64_t last_heartbeat_ns; /* honest, and which, unlike data that comes late or twice, no receiver of a unicast stream turns away */
    int64_t last_silence_ns;   /* end of the last silence that could make a driver give an image up */
} auditor_heard;

/* A client that was abandoned: when its driver must miss it. */
typedef struct auditor_corpse
{
    int32_t driver;
    int64_t client_id;
    int64_t heartbeat_ms; /* its last */
    bool is_missed;
} auditor_corpse;

/* A stream as it was asked for, and the ports that its channels have. */
typedef struct auditor_flow
{
    int32_t stream_id;
    int32_t term_length;
    int32_t mtu_length;
    int32_t first_port;
    int32_t port_count;
} auditor_flow;

typedef struct auditor_driver
{
    const sim_host *host;
    bool is_alive;
    char dir[AS_PATH_MAX];
    asi_cnc cnc;
    asi_counters counters;
    auditor_counter_memory *memory; /* owned, AUDITOR_COUNTERS */
    int32_t noted_streams;          /* there were so many when its counters were noted last */
} auditor_driver;

struct auditor
{
    const int64_t *now_ns;
    auditor_times times;
    auditor_bounds bounds;
    bool is_calm;           /* the network is well and nobody stalls */
    int64_t calm_since_ns;
    bool is_lossless;       /* no fault of the seed loses anything */
    bool is_wire_clean;     /* nor delivers stale or broken datagrams */
    bool has_untethered;
    auditor_flow flows[AUDITOR_MAX_FLOWS];
    int32_t flow_count;
    auditor_driver drivers[AUDITOR_MAX_DRIVERS];
    int32_t driver_count;
    auditor_stream streams[AUDITOR_MAX_STREAMS];
    int32_t stream_count;
    auditor_image images[AUDITOR_MAX_IMAGES];
    int32_t image_count;
    auditor_heard heard[1024];
    int32_t heard_count;
    auditor_corpse corpses[64];
    int32_t corpse_count;
    int64_t delivered_bytes;
    int64_t delivered_messages;
    int64_t published_bytes;
    int64_t gaps;
};

typedef struct auditor_offer
{
    int64_t position_before;
    int64_t limit_before;
    int64_t position; /* that offer or claim returned */
    int64_t number;
    int32_t length;
} auditor_offer;

void auditor_open(auditor *a, const int64_t *now_ns, const auditor_times *times);
void auditor_close(auditor *a);
/* Byte `i` of message `number`. */
void auditor_fill(uint8_t *to, int64_t number, int64_t offset, int64_t length);

/* Of every stream, before the drivers start. */
void auditor_set_flow(auditor *a, const auditor_flow *flow);
const auditor_flow *auditor_find_flow(const auditor *a, int32_t stream_id); /* NULL: an unknown stream */
/* Every datagram that a driver sends. */
void auditor_judge_sent(const auditor *a, const sim_sighting *sighting);
int32_t auditor_on_driver(auditor *a, const sim_host *host, const char *dir);
void auditor_on_driver_gone(auditor *a, int32_t driver);
auditor_stream *auditor_on_publication(auditor *a, int32_t driver, as_publication *publication);
void auditor_on_offer(auditor *a, auditor_stream *stream, const auditor_offer *offer);
/* `publication` is NULL when it can't be asked any more. */
void auditor_on_publication_end(auditor *a, auditor_stream *stream, const as_publication *publication, auditor_end end);
auditor_image *auditor_on_image(auditor *a, int32_t driver, const void *subscription, as_image *image, bool is_local);
void auditor_on_image_gone(auditor *a, const void *subscription, as_image *image, auditor_why why);
void auditor_on_fragment(auditor *a, const void *subscription, const uint8_t *data, int64_t length, const as_header *header);
/* Where its reader is, with or without a fragment: an unreliable stream may lose its last ones. */
void auditor_on_position(auditor *a, const void *subscription, as_image *image);
const auditor_heard *auditor_find_heard(const auditor *a, const auditor_image *image); /* NULL: nothing */
/* When a frame of its stream last came to its driver, or when the subscriber got it, if that was later; of heartbeats: or when
 * it was made. */
int64_t auditor_last_heard_ns(const auditor *a, const auditor_image *image, bool is_heartbeat);
auditor_image *auditor_find_image(auditor *a, const void *subscription, int64_t correlation_id);
/* The client will never be run again. */
void auditor_on_client_dead(auditor *a, int32_t driver, int64_t client_id);
/* sim_tap. */
void auditor_on_datagram(void *context, const sim_host *host, const uint8_t *bytes, int32_t length, bool is_hostile);

void auditor_set_calm(auditor *a, bool is_calm);
/* Counters of every driver; often. */
void auditor_look(auditor *a);
/* The publication as its client sees it. */
void auditor_look_at_publication(auditor *a, auditor_stream *stream, const as_publication *publication, bool is_active);
/* Every image has been read to the end of its stream? For waiting; complains never. */
bool auditor_is_delivered(auditor *a, const void *subscription, const auditor_stream *stream);
/* For a driver without clients: only resources that no client owns remain. False: not yet. `what` names what remains. */
bool auditor_is_empty(const auditor *a, int32_t driver, char *what, size_t capacity);

#endif
