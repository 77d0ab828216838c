/* The receive side of one stream from one source: its log buffer, and the state that receiver and conductor exchange about it.
 * Spec: 04 §8.5-8.7, §9, §12, 02 §9.
 *
 * The conductor creates an image from a SETUP (asi_rx_image_init) and passes it to the receiver by commands. The receiver inserts
 * datagrams and sends status messages, NAKs and other control frames. The conductor frees the image after `is_released` has
 * answered REMOVE_IMAGE. In each cycle the conductor runs rebuild, loss and window (image_loss.h, image_status.h). It owns what
 * is not here: subscribers and the image's life cycle.
 *
 * One thread writes each group of fields below; padding separates the groups. Fields that belong together go through a sequence
 * lock: the writer raises `change_begin` first and `change_end` last, and the reader takes the values only when both are equal.
 * Invariants: rcv-pos never decreases. Only the receiver writes the log. Up to zeroed_position, which is beyond rcv-hwm, each
 * slot holds received data or zeros, so that readers and the gap scan stop there. */
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
#define ASI_STRANGER_NS 10000000000LL
#define ASI_STRANGER_BYTES (64 * 1024)
#define ASI_NO_RESPONSE_SESSION INT64_MIN

/* A gap that the conductor found. The receiver sends a NAK for it, or fills it if the image is unreliable. */
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

/* Contents of the next status message. */
typedef struct asi_sm_schedule
{
    int64_t change_begin;
    int64_t position;
    int32_t window;
    int64_t change_end;
} asi_sm_schedule;

/* Delays before the first and the following NAKs of a gap. */
typedef struct asi_nak_delay
{
    bool is_multicast;        /* random backoff instead of the two delays below */
    bool is_ahead;            /* gaps behind the first one are requested, too */
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
    int64_t scanned_hwm;      /* receiver's position when the active gap was measured */
    int64_t scanned_packet_ns;
    int32_t repeats;          /* number of requests for the gap */
    int64_t requested_ns;     /* when it was requested last; INT64_MIN: not yet */
    int64_t asked_position;   /* what is missing between the active gap and here has been requested, once */
    int64_t ahead_position;   /* of the first gap from there on */
    int64_t ahead_deadline_ns; /* when to request it, or to look for it; INT64_MAX: when data has arrived */
} asi_loss_detector;

typedef struct asi_rx_image_connection
{
    asi_receive_destination *destination; /* borrowed */
    asi_address control_address;          /* implicit: source of its first frame; none until then */
    int64_t known_since_ns;               /* of an implicit control address */
    int64_t last_activity_ns;
    int64_t last_frame_ns;
    int64_t answerable_bytes;          /* bytes that may go to an implicit control address, see asi_rx_image_may_answer */
    bool is_status_last;               /* no request was sent after the last status message */
    int32_t owed_bytes;                /* that status messages leave for a request which found too few of them; 0: none waits */
    bool is_eos;
    int64_t eos_position;
} asi_rx_image_connection;

typedef struct asi_rx_image
{
    /* Constant; written by asi_rx_image_init. */
    int64_t correlation_id;
    int32_t session_id;
    int32_t stream_id;
    asi_receive_endpoint *endpoint; /* borrowed */
    asi_log log;                    /* owned by the conductor */
    int64_t join_position;
    int64_t liveness_timeout_ns;    /* for counting active transports */
    bool is_reliable;
    int64_t *hwm_counter;           /* borrowed: rcv-hwm, rcv-pos, rcv-naks-sent */
    int64_t *position_counter;
    int64_t *naks_counter;
    const asi_counters *counters;   /* borrowed: the system counters, by id */

    /* Private to the conductor. */
    alignas(ASI_CACHE_LINE) asi_loss_detector loss;
    asi_congestion congestion;
    int64_t rebuild_position;   /* value of rcv-pos */
    int64_t floor_position;     /* no working subscriber is expected behind it: a term behind the last SM */
    int64_t next_sm_position;   /* as scheduled last */
    int32_t next_sm_window;

    /* Written by the conductor, read by the receiver once per duty cycle (acquire). A stale read costs one cycle. */
    alignas(ASI_CACHE_LINE) asi_sm_schedule sm_schedule;
    asi_gap_schedule gap_schedule;
    bool is_sending_eos_sm;
    bool is_sm_disabled;        /* a newer image of the session has taken over */
    char rejection_reason[ASI_ERROR_TEXT_MAX_LENGTH + 1]; /* terminated; written once, before the rejecting command */
    int64_t response_session_id; /* ASI_NO_RESPONSE_SESSION, or the i32 that RSP_SETUP announces */

    /* Written by the receiver, read by the conductor (acquire). */
    alignas(ASI_CACHE_LINE) int64_t last_packet_ns; /* accepted data and heartbeats only */
    int64_t hwm;                /* value of rcv-hwm; others could write the counter itself */
    int64_t rtt_ns;             /* last measured; initial_rtt_ns when not measuring */
    int64_t last_gap_change;    /* the last change_end that was handled */
    bool is_end_of_stream;      /* every connection has reported it; position in the log's metadata */
    bool is_revoked;
    bool is_left_behind;     /* see asi_rx_image_on_setup */
    bool is_begun;              /* data arrived at the join position */
    bool is_released;           /* release, last store: the receiver has dropped every reference */

    /* Private to the receiver. */
    alignas(ASI_CACHE_LINE) int64_t sm_deadline_ns; /* up to is_measuring_rtt: fields that an idle cycle reads */
    int64_t last_sm_change;     /* the last change_end that was handled */
    int64_t last_rttm_ns;
    int64_t rtt_timeout_ns;
    bool is_measuring_rtt;
    int64_t response_deadline_ns; /* for the next RSP_SETUP; the first is due at once */
    int64_t last_sm_position;   /* as sent last */
    int64_t over_run_threshold;
    int64_t zeroed_position;    /* below it the log holds received data, or zeros in gaps */
    int64_t filled_position;    /* end of the last filled gap; what begins before it is late */
    int32_t max_window;         /* a multiple of AS_FRAME_ALIGNMENT */
    bool is_heard;              /* data or a heartbeat was accepted */
    int32_t list_index;         /* in the receiver's list of images */
    bool is_rejected;
    int32_t connection_count;
    asi_rx_image_connection connections[ASI_IMAGE_MAX_CONNECTIONS];
} asi_rx_image;

typedef struct asi_rx_image_params
{
    int64_t correlation_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t active_term_id; /* with term_offset: the join position */
    int32_t term_offset;
    asi_receive_endpoint *endpoint;
    asi_receive_destination *destination; /* that received the SETUP */
    const asi_address *source;            /* of the SETUP */
    int32_t receiver_window_length;       /* rcv-wnd or default; capped at half a term here */
    int64_t liveness_timeout_ns;
    bool is_reliable;
    asi_nak_delay nak_delay;
    asi_congestion_params congestion;
    asi_rand rand;                        /* for multicast backoff */
    int64_t *hwm_counter;
    int64_t *position_counter;
    int64_t *naks_counter;
    const asi_counters *counters;
    int64_t now_ns;
} asi_rx_image_params;

/* Sets the initial values of Spec: 04 §8.5 over a created log whose tails and metadata are set; `image` must be aligned to a
 * cache line. Does not write counters. */
void asi_rx_image_init(asi_rx_image *image, const asi_log *log, const asi_rx_image_params *params);

/* --- the receiver's side --- */

/* Inserts a DATA or PAD datagram or heartbeat that passed the frame check, for this session and stream. Returns its length; 0
 * when it was dropped; ASI_IMAGE_INVALID when it counts as an invalid packet; ASI_IMAGE_NO_ROOM when there is no storage for it
 * in the log (treated as lost). */
#define ASI_IMAGE_INVALID (-1)
#define ASI_IMAGE_NO_ROOM (-2)
int32_t asi_rx_image_insert_untrusted(asi_rx_image *image, asi_receive_destination *destination, const void *datagram,
    int32_t length, const asi_address *source, int64_t now_ns);
/* Handles a SETUP on `destination`: creates or refreshes its connection. Also detects an image that was left behind: only SETUPs
 * have ever arrived, and the sender has advanced by more than half a term since the image joined. The sender then accepts no
 * status message of the image, and the image accepts none of its data. The cause is a publisher that does not wait for receivers,
 * because spies simulate its connection, and that advanced before the image's first status message. The conductor ends the image,
 * and a later SETUP creates another; stock drivers keep it for the liveness timeout. */
void asi_rx_image_on_setup(asi_rx_image *image, asi_receive_destination *destination, const asi_setup_frame *frame,
    const asi_address *source, int64_t now_ns);
/* Counts a datagram on `destination` that the calls above do not see towards the bytes that may be answered. */
void asi_rx_image_count_received(asi_rx_image *image, const asi_receive_destination *destination, int32_t length);
void asi_rx_image_add_connection(asi_rx_image *image, asi_receive_destination *destination, int64_t now_ns);
void asi_rx_image_remove_connection(asi_rx_image *image, const asi_receive_destination *destination, int64_t now_ns);
/* Destination address of a connection's frames; NULL if unknown. */
const asi_address *asi_rx_image_connection_address(const asi_rx_image_connection *connection);
/* As above, for SMs, NAKs and other control frames, which are not sent to an address that was silent for 5 s. */
const asi_address *asi_rx_image_live_connection_address(const asi_rx_image_connection *connection, int64_t now_ns);
/* Checks whether `length` bytes may go to a connection and leave `spare`; if so, counts them as sent. A host that forges a source
 * address must not make the driver flood that address. When the address is the source of received datagrams, status messages,
 * NAKs and other control frames are therefore at most three times the bytes received. A publisher sends a SETUP, data or a
 * heartbeat every 100 ms, a status message is due every 200 ms, and the data that reveals a gap allows enough bytes to request
 * it, so no publisher waits. */
bool asi_rx_image_may_answer(asi_rx_image_connection *connection, int32_t length, int32_t spare);
/* True for a source address that has been heard for less than ASI_STRANGER_NS, and has sent less than ASI_STRANGER_BYTES: see
 * asi_outgoing. */
bool asi_rx_image_connection_is_stranger(const asi_rx_image_connection *connection, int64_t now_ns);
/* Stores the number of connections with a frame within the liveness timeout in the log's metadata. */
void asi_rx_image_update_active_transports(asi_rx_image *image, int64_t now_ns);
/* If every slot of the gap is empty, writes one padding frame over it. */
void asi_rx_image_fill_gap(asi_rx_image *image, const asi_gap *gap);

/* --- exchange between conductor and receiver --- */

void asi_rx_image_publish_gap(asi_rx_image *image, const asi_gap *gap);
/* The conductor's: true when the receiver has taken the last published gap. */
bool asi_rx_image_is_gap_taken(const asi_rx_image *image);
/* True, with the gap, when it has changed since the last call. */
bool asi_rx_image_poll_gap(asi_rx_image *image, asi_gap *gap);
void asi_rx_image_publish_sm(asi_rx_image *image, int64_t position, int32_t window);
/* False while the conductor changes it: try again in the next cycle. */
bool asi_rx_image_read_sm(const asi_rx_image *image, int64_t *position, int32_t *window, int64_t *change);

#endif
