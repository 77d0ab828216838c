/* The receive side of one stream from one source: its log buffer and what receiver and conductor tell each other about it.
 * Spec: 04 §8.5-8.7, §9, §12, 02 §9.
 *
 * Made by the conductor from a SETUP (asi_image_init), handed to the receiver by commands, which inserts datagrams and sends status
 * messages, NAKs and the like; freed by the conductor after REMOVE_IMAGE was answered by `is_released`. The conductor, each cycle: rebuild, loss
 * and window (image_loss.h, image_status.h); it owns what is not here, like subscribers and the life of the image.
 *
 * Groups below are written by one thread each and padded apart. Two or more fields that belong together go through a sequence
 * lock: `change_begin` is raised first, `change_end` last, the reader takes the values only when both are the same.
 * Invariants: rcv-pos never goes back; the receiver alone writes the log; up to zeroed_position, which is beyond rcv-hwm, each
 * slot holds what was received or zeros, so that readers and the gap scan stop where they must. */
#ifndef ASI_DRIVER_RX_IMAGE_H
#define ASI_DRIVER_RX_IMAGE_H

#include <stdalign.h>

#include "base/rand.h"
#include "driver/rx/congestion.h"
#include "driver/rx/endpoint.h"
#include "shm/counters.h"
#include "shm/log_layout.h"

#define ASI_IMAGE_MAX_CONNECTIONS ASI_ENDPOINT_MAX_DESTINATIONS
#define ASI_CONNECTION_TIMEOUT_NS 5000000000LL /* silent connections get no SM; Spec: 04 §8.7.4 */
#define ASI_NO_RESPONSE_SESSION INT64_MIN

/* A gap that the conductor found: NAK it, or fill it if the image is unreliable. */
typedef struct asi_gap
{
    int32_t term_id;
    int32_t term_offset;
    int32_t length;
} asi_gap;

typedef struct asi_gap_schedule
{
    int64_t change_begin;
    int32_t term_id;
    int32_t term_offset;
    int32_t length;
    int64_t change_end;
} asi_gap_schedule;

/* What the next status message says. */
typedef struct asi_sm_schedule
{
    int64_t change_begin;
    int64_t position;
    int32_t window;
    int64_t change_end;
} asi_sm_schedule;

/* How long to wait before the first and the following NAKs of a gap. */
typedef struct asi_nak_delay
{
    bool is_multicast;        /* random back-off instead of the two delays below */
    int64_t first_ns;
    int64_t retry_ns;
    int64_t max_backoff_ns;   /* multicast */
    int64_t group_size;
} asi_nak_delay;

typedef struct asi_loss_detector
{
    asi_nak_delay delay;
    asi_rand rand;
    asi_gap active;           /* length 0: none */
    int64_t deadline_ns;
    int64_t scanned_hwm;      /* what the receiver had got to when the active gap was measured */
    int64_t scanned_packet_ns;
    int32_t repeats;          /* how often the gap was asked for */
} asi_loss_detector;

typedef struct asi_image_connection
{
    asi_receive_destination *destination; /* borrowed */
    asi_address control_address;          /* implicit: source of its first frame; none until then */
    int64_t last_activity_ns;
    int64_t last_frame_ns;
    int64_t answerable_bytes;             /* that may be sent to an implicit control address, see asi_image_may_answer */
    bool is_eos;
    int64_t eos_position;
} asi_image_connection;

typedef struct asi_image
{
    /* Constant; written by asi_image_init. */
    int64_t correlation_id;
    int32_t session_id;
    int32_t stream_id;
    asi_receive_endpoint *endpoint; /* borrowed */
    asi_log log;                    /* owned by the conductor */
    int64_t join_position;
    int64_t liveness_timeout_ns;    /* for the count of active transports */
    bool is_reliable;
    int64_t *hwm_counter;           /* borrowed: rcv-hwm, rcv-pos, rcv-naks-sent */
    int64_t *position_counter;
    int64_t *naks_counter;
    const asi_counters *counters;   /* borrowed: the system's, by id */

    /* The conductor's own: nobody else reads it. */
    alignas(ASI_CACHE_LINE) asi_loss_detector loss;
    asi_congestion congestion;
    int64_t rebuild_position;   /* value of rcv-pos */
    int64_t floor_position;     /* no working subscriber is believed to be behind it: a term behind the last SM */
    int64_t next_sm_position;   /* as last scheduled */
    int32_t next_sm_window;

    /* Written by the conductor, read by the receiver once per duty cycle (acquire); stale by a cycle costs a cycle. */
    alignas(ASI_CACHE_LINE) asi_sm_schedule sm_schedule;
    asi_gap_schedule gap_schedule;
    bool is_sending_eos_sm;
    bool is_sm_disabled;        /* a newer image of the session took over */
    char rejection_reason[ASI_ERROR_TEXT_MAX_LENGTH + 1]; /* terminated; written once, before the command that rejects */
    int64_t response_session_id; /* ASI_NO_RESPONSE_SESSION, or the i32 to announce by RSP_SETUP */

    /* Written by the receiver, read by the conductor (acquire). */
    alignas(ASI_CACHE_LINE) int64_t last_packet_ns; /* accepted data and heartbeats only */
    int64_t hwm;                /* value of rcv-hwm: the counter lies where others could write */
    int64_t rtt_ns;             /* last measured; stays initial_rtt_ns without measuring */
    bool is_end_of_stream;      /* every connection said so; position in the log's metadata */
    bool is_revoked;
    bool is_left_behind;        /* see asi_image_on_setup */
    bool is_begun;              /* data came where the image joined */
    bool is_released;           /* release, last of all: the receiver has dropped every reference */

    /* The receiver's own. */
    alignas(ASI_CACHE_LINE) int64_t sm_deadline_ns; /* up to is_measuring_rtt: what a cycle looks at when nothing is due */
    int64_t last_sm_change;     /* change_end last acted upon */
    int64_t last_gap_change;
    int64_t last_rttm_ns;
    int64_t rtt_timeout_ns;
    bool is_measuring_rtt;
    int64_t response_deadline_ns; /* of the next RSP_SETUP; the first is due at once */
    int64_t last_sm_position;   /* as last sent */
    int64_t over_run_threshold;
    int64_t zeroed_position;    /* up to here the log holds what was received, and zeros where nothing was */
    int32_t max_window;
    bool is_heard;              /* data or a heartbeat was accepted */
    int32_t list_index;         /* of the receiver's list of images */
    bool is_rejected;
    int32_t connection_count;
    asi_image_connection connections[ASI_IMAGE_MAX_CONNECTIONS];
} asi_image;

typedef struct asi_image_params
{
    int64_t correlation_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t active_term_id; /* with term_offset: the join position */
    int32_t term_offset;
    asi_receive_endpoint *endpoint;
    asi_receive_destination *destination; /* where the SETUP came in */
    const asi_address *source;            /* of the SETUP */
    int32_t receiver_window_length;       /* rcv-wnd or default; capped at half a term here */
    int64_t liveness_timeout_ns;
    bool is_reliable;
    asi_nak_delay nak_delay;
    asi_congestion_params congestion;
    asi_rand rand;                        /* for multicast back-off */
    int64_t *hwm_counter;
    int64_t *position_counter;
    int64_t *naks_counter;
    const asi_counters *counters;
    int64_t now_ns;
} asi_image_params;

/* Initial values of Spec: 04 §8.5 over a created log whose tails and metadata are set; `image` must be aligned to a cache line.
 * Counters are not written. */
void asi_image_init(asi_image *image, const asi_log *log, const asi_image_params *params);

/* --- the receiver's side --- */

/* A DATA or PAD datagram or heartbeat that passed the frame check, for this session and stream. Returns its length, or 0 when
 * it was dropped; ASI_IMAGE_INVALID when it must count as an invalid packet; ASI_IMAGE_NO_ROOM when the log gets no storage for it
 * (as if it had been lost). */
#define ASI_IMAGE_INVALID (-1)
#define ASI_IMAGE_NO_ROOM (-2)
int32_t asi_image_insert_untrusted(asi_image *image, asi_receive_destination *destination, const void *datagram, int32_t length,
    const asi_address *source, int64_t now_ns);
/* A SETUP came in on `destination`: its connection is made or refreshed. If nothing but SETUPs ever came, and the sender has gone on
 * by more than half a term since the image joined, it takes no status message of the image, and the image nothing that it sends: a
 * publisher that waits for nobody, as spies simulate its connection, left it behind before its first status message. The conductor
 * then ends it, and a later SETUP makes another; stock drivers keep it for the liveness timeout. */
void asi_image_on_setup(asi_image *image, asi_receive_destination *destination, const asi_setup_frame *frame,
    const asi_address *source, int64_t now_ns);
/* What came in on `destination` otherwise than by the calls above counts, too, for what may be answered. */
void asi_image_count_heard(asi_image *image, const asi_receive_destination *destination, int32_t length);
void asi_image_add_connection(asi_image *image, asi_receive_destination *destination, int64_t now_ns);
void asi_image_remove_connection(asi_image *image, const asi_receive_destination *destination, int64_t now_ns);
/* Where a connection's frames go; NULL if not known. */
const asi_address *asi_image_connection_address(const asi_image_connection *connection);
/* As above for SMs, NAKs and the like, which go to nobody who was silent for 5 s. */
const asi_address *asi_image_live_connection_address(const asi_image_connection *connection, int64_t now_ns);
/* Whether `length` bytes may go to a connection and leave `spare`; they are then taken for sent. Whoever forges a source address must not have us write
 * there at a rate: where the address is the source of what came in, status messages, NAKs and the like measure three times that at
 * most. A publisher sends a SETUP, data or a heartbeat each 100 ms, a status message is due each 200 ms, and what shows a gap
 * brings enough to ask for it, so that no publisher waits. */
bool asi_image_may_answer(asi_image_connection *connection, int32_t length, int32_t spare);
/* Stores the number of connections with a frame within the liveness timeout into the log's metadata. */
void asi_image_update_active_transports(asi_image *image, int64_t now_ns);
/* If every slot of the gap is empty, writes one padding frame over it. */
void asi_image_fill_gap(asi_image *image, const asi_gap *gap);

/* --- hand-over --- */

void asi_image_publish_gap(asi_image *image, const asi_gap *gap);
/* true with the schedule when it changed since the last time. */
bool asi_image_poll_gap(asi_image *image, asi_gap *gap);
void asi_image_publish_sm(asi_image *image, int64_t position, int32_t window);
/* false while it is being changed: look again next cycle. */
bool asi_image_read_sm(const asi_image *image, int64_t *position, int32_t *window, int64_t *change);

#endif
