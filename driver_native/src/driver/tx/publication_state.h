/* The sender's half of a network publication, as data. The conductor's half in ctl/network_publications embeds this struct, fills
 * it in before the sender gets it, and frees it after is_released. In between, one thread writes each group of fields. */
#ifndef ASI_DRIVER_TX_PUBLICATION_STATE_H
#define ASI_DRIVER_TX_PUBLICATION_STATE_H

#include "driver/net/destinations.h"
#include "driver/tx/flow.h"
#include "driver/tx/receivers.h"
#include "driver/tx/retransmit.h"
#include "shm/log_layout.h"

struct asi_sender_endpoint;

typedef struct asi_sender_publication
{
    /* -- written by the conductor before the sender gets the publication -------------------------------------------- */
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    struct asi_sender_endpoint *endpoint;
    asi_log log;                     /* owned by the conductor's half */
    int32_t max_messages_per_send;
    int32_t setup_ttl;
    bool is_group;                   /* multicast or MDC */
    bool signal_eos;
    bool spies_simulate_connection;
    bool backs_off_setups;           /* nobody vouches for its destination: fewer and fewer SETUPs until a receiver answers */
    bool is_response;                /* answers requests: sends to an address learned from status messages */
    bool has_response_subscription;  /* requests: its SETUPs ask for a response channel */
    int64_t response_correlation_id;
    int64_t connection_timeout_ns;
    int64_t *position_counter;       /* snd-pos, snd-lmt, snd-bpe, snd-naks-received: release stores by the sender */
    int64_t *limit_counter;
    int64_t *back_pressure_counter;
    int64_t *naks_counter;

    /* -- the sender's ------------------------------------------------------------------------------------------------ */
    uint8_t pad_1[ASI_CACHE_LINE];
    /* The fields that an idle cycle reads, in one cache line: a driver may have thousands of idle streams. */
    int64_t quiet_until_ns __attribute__((aligned(ASI_CACHE_LINE))); /* nothing is due before this, unless a frame follows */
    const int32_t *next_frame_length; /* of the frame at `position`, while quiet */
    struct asi_sender_publication *next; /* ring of the sender's publications */
    int64_t position;                /* next byte to send; release, the conductor loads it with acquire */
    int64_t limit;
    int64_t last_setup_ns;
    int64_t last_data_or_heartbeat_ns;
    int64_t setup_interval_ns;       /* of the last SETUP, while it backs off; 0 before */
    bool has_initial_connection;     /* a status message arrived that was more than a SETUP request */
    bool is_setup_elicited;
    bool is_tracking_limits;         /* reaching the limit again is a new back-pressure event */
    asi_receivers receivers;
    asi_flow flow;
    asi_retransmit retransmit;
    asi_fan_out fan_out;             /* of the batch at `position`, while it is sent to many destinations */
    int32_t batch_count;             /* its datagrams, and the log bytes that they cover */
    int64_t batch_length;
    int64_t cycle_bytes_left;        /* bytes that may still be copied in this cycle */
    int64_t credit_since_ns;         /* start of the resend interval, see resend_credit */
    int64_t sent_bytes;              /* log bytes sent since then */
    int64_t sent_before_bytes;       /* sent in the previous interval */
    int64_t resent_bytes;
    int64_t replies_since_ns;        /* start of the interval that limits RTTM replies */
    int64_t replies;
    asi_address response_address;    /* none until learned */
    struct asi_sender_publication *next_in_bucket;
    struct asi_sender_publication *previous;

    /* -- written by the sender with release, read by the conductor with acquire; a stale read costs one cycle ---------- */
    uint8_t pad_2[ASI_CACHE_LINE];
    bool has_receivers;
    bool has_required_receivers;
    bool has_received_unicast_eos;   /* sticky */
    bool is_released;                /* last store, after REMOVE */

    /* -- written by the conductor with release, read by the sender with acquire ---------------------------------------- */
    uint8_t pad_3[ASI_CACHE_LINE];
    bool is_end_of_stream;
    bool is_revoked;
    bool has_spies;                  /* at least one spy that is not resting */
    int64_t max_spy_position;
    int64_t zeroed_limit;            /* below it the log holds this wrap's frames or zeros; scans stop here */
    uint8_t pad_4[ASI_CACHE_LINE];
} asi_sender_publication;

#endif
