/* Congestion control: computes the window that an image announces. Spec: 04 §10. The caller passes the time.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_RX_CONGESTION_H
#define ASI_DRIVER_RX_CONGESTION_H

#include "base/result.h"

typedef enum asi_congestion_kind
{
    ASI_CONGESTION_STATIC,
    ASI_CONGESTION_CUBIC
} asi_congestion_kind;

typedef struct asi_congestion_params
{
    asi_congestion_kind kind;
    bool is_measuring_rtt;
    bool is_tcp_mode;
    int64_t initial_rtt_ns;
    int64_t *rtt_counter;    /* borrowed; NULL unless cubic */
    int64_t *window_counter;
} asi_congestion_params;

typedef struct asi_congestion
{
    asi_congestion_params params;
    int32_t mtu_length;
    int32_t max_window;    /* bytes; a whole number of MTUs for cubic */
    int32_t max_cwnd;      /* the fields from here on are in MTUs */
    int32_t cwnd;
    int32_t w_max;
    double k;
    int64_t loss_time_ns;
    int64_t update_time_ns;
    int64_t update_interval_ns;
} asi_congestion;

/* "static", "cubic" or NULL for the default. AS_E_USAGE for anything else: the image is not created. */
as_result asi_congestion_parse(const char *cc, asi_congestion_kind *kind) AS_MUST_USE;
void asi_congestion_init(asi_congestion *congestion, const asi_congestion_params *params, int32_t term_length,
    int32_t mtu_length, int32_t receiver_window_length, int64_t now_ns);
/* Returns the first window to announce. */
int32_t asi_congestion_window(const asi_congestion *congestion);
/* Returns the new window. Sets *force_sm when a status message is due at once. */
int32_t asi_congestion_on_rebuild(asi_congestion *congestion, int64_t now_ns, int64_t min_subscriber_position,
    int64_t next_sm_position, int64_t rtt_ns, bool found_loss, bool *force_sm);

#endif
