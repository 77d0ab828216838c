/* Flow control: computes how far a publication may send, from its receivers' status messages. Spec: 04 §6.
 *
 *   max, unicast  the fastest receiver sets the limit
 *   min           the slowest one does
 *   tagged        the slowest of those with the group's tag
 *
 * Owned by a publication. The conductor reads the parameters; everything else is the sender's. A new receiver of min and tagged
 * may make the table grow, by doubling up to ASI_FLOW_RECEIVERS_CAPACITY; no other path allocates. */
#ifndef ASI_DRIVER_TX_FLOW_H
#define ASI_DRIVER_TX_FLOW_H

#include "driver/events.h"
#include "wire/uri.h"

#define ASI_FLOW_RECEIVERS_CAPACITY 4096

typedef enum asi_flow_kind
{
    ASI_FLOW_MAX,
    ASI_FLOW_MIN,
    ASI_FLOW_TAGGED
} asi_flow_kind;

typedef struct asi_flow_params
{
    asi_flow_kind kind;
    int64_t group_tag;
    int64_t min_group_size;
    int64_t receiver_timeout_ns;
    int64_t rrwm; /* retransmit receiver window multiple */
} asi_flow_params;

typedef struct asi_flow_receiver
{
    int64_t receiver_id;
    int64_t position;       /* highest reported consumption */
    int64_t limit;          /* consumption plus window of the last status message */
    int64_t last_status_ns;
    bool is_ended;
} asi_flow_receiver;

typedef struct asi_flow
{
    asi_flow_params params;
    asi_flow_receiver *receivers; /* owned; min and tagged only */
    int32_t receiver_count;
    int32_t receiver_capacity;
    bool has_setup_request;       /* a receiver requested a SETUP: hold the limit when it is sent */
    bool is_limit_held;
    int64_t held_limit;
    int64_t held_since_ns;
    int64_t *receivers_counter;   /* borrowed: fc-receivers; NULL for max */
    asi_events *events;           /* borrowed; NULL: no event log */
    int32_t session_id;           /* for the event log, as the next */
    int32_t stream_id;
} asi_flow;

/* One status message, validated and converted to positions. */
typedef struct asi_flow_status
{
    int64_t receiver_id;
    int64_t position;
    int32_t window_length;
    bool is_end_of_stream;
    bool has_group_tag;
    int64_t group_tag;
} asi_flow_status;

/* Reads the channel's `fc` parameter; the settings give the default strategies. AS_E_USAGE names the invalid part. */
as_result asi_flow_params_read(const asi_driver_settings *settings, const asi_uri *uri, const char *channel, bool is_group,
    asi_flow_params *params)
    AS_MUST_USE;
as_result asi_flow_open(asi_flow *flow, const asi_flow_params *params, int64_t *receivers_counter) AS_MUST_USE;
void asi_flow_close(asi_flow *flow); /* no effect on a zeroed one */

/* These return the new sender limit. on_idle may lower it. */
int64_t asi_flow_on_status(asi_flow *flow, const asi_flow_status *status, int64_t sender_limit, int64_t now_ns);
int64_t asi_flow_on_idle(asi_flow *flow, int64_t sender_limit, int64_t now_ns);
/* Call when a status message requests a SETUP, and when the SETUP is sent. */
void asi_flow_on_setup_request(asi_flow *flow, const asi_flow_status *status);
void asi_flow_on_setup(asi_flow *flow, int64_t sender_limit, int64_t now_ns);
void asi_flow_on_error(asi_flow *flow, int64_t receiver_id, bool has_group_tag, int64_t group_tag);
bool asi_flow_has_required_receivers(const asi_flow *flow);

#endif
