/* Windows, congestion control, status message schedule; see image_status.h. */
#include "driver/rx/image_status.h"

#include "base/atomic.h"
#include "wire/command.h"

#define RTT_TIMEOUT_MULTIPLE 4
#define RTT_MAX_NS 10000000000LL /* limits forged echoes, which would trigger a request in each cycle or never again */

int asi_rx_image_update_status(asi_rx_image *image, int64_t min_subscriber_position, bool found_loss, int64_t now_ns)
{
    bool force_sm;
    /* Limits the position to what was rebuilt, and never moves it back: subscribers' counters may hold any value. */
    int64_t position = min_subscriber_position < image->rebuild_position ? min_subscriber_position : image->rebuild_position;
    position = position > image->next_sm_position ? position : image->next_sm_position;
    const int32_t window = asi_congestion_on_rebuild(&image->congestion, now_ns, position, image->next_sm_position,
        asi_load_relaxed_i64(&image->rtt_ns), found_loss, &force_sm);
    if (!force_sm && position <= image->next_sm_position + window / 4 && window == image->next_sm_window)
    {
        return 0;
    }
    const int64_t floor = position - image->log.term_length;
    image->floor_position = floor > image->floor_position ? floor : image->floor_position;
    image->next_sm_position = position;
    image->next_sm_window = window;
    asi_rx_image_publish_sm(image, position, window);
    return 1;
}

void asi_rx_image_schedule_sm_now(asi_rx_image *image)
{
    asi_rx_image_publish_sm(image, image->next_sm_position, image->next_sm_window);
}

bool asi_rx_image_is_rttm_due(const asi_rx_image *image, int64_t now_ns)
{
    return image->is_measuring_rtt && now_ns > image->last_rttm_ns + image->rtt_timeout_ns;
}

void asi_rx_image_on_rtt(asi_rx_image *image, int64_t rtt_ns)
{
    const asi_congestion_params *params = &image->congestion.params;
    if (ASI_CONGESTION_CUBIC != params->kind || rtt_ns < 0 || rtt_ns > RTT_MAX_NS)
    {
        return;
    }
    asi_store_relaxed_i64(&image->rtt_ns, rtt_ns);
    asi_store_release_i64(params->rtt_counter, rtt_ns);
    image->rtt_timeout_ns = RTT_TIMEOUT_MULTIPLE * (rtt_ns > params->initial_rtt_ns ? rtt_ns : params->initial_rtt_ns);
}
