/* A driver that publishes to one raw socket Q, which plays the subscriber's driver. Method: network_rig.h. */
#ifndef TEST_NETWORK_PUBLISHING_H
#define TEST_NETWORK_PUBLISHING_H

#include "network_rig.h"

typedef struct stage
{
    test_rig rig;
    peer q;
    rig_publication publication;
} stage;

/* A publication to Q with further channel parameters ("|..." or ""). */
static inline void open_stage_with(stage *s, const char *params, bool exclusive)
{
    char channel[256];
    rig_open(&s->rig, network_settings);
    peer_open(&s->q);
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d|term-length=64k%s", s->q.port, params);
    rig_add_network_publication(&s->rig, channel, exclusive, &s->publication);
    rig_cycles(&s->rig, 3);
}

static inline void open_stage(stage *s) { open_stage_with(s, "", false); }

static inline void close_stage(stage *s)
{
    asi_log_close(&s->publication.log);
    peer_close(&s->q);
    rig_close(&s->rig);
}

static inline bool is_connected(const stage *s) { return 1 == asi_load_acquire_i32(&s->publication.log.metadata->is_connected); }

/* SETUP taken, status message given: heartbeats have begun. */
static inline void connect_stage(stage *s, int32_t window)
{
    peer_expect(&s->q, ASI_FRAME_SETUP);
    send_status(&s->rig, &s->q, &s->publication, 0, window, 0);
    CHECK(is_connected(s));
    peer_drain(&s->q, ASI_FRAME_DATA);
}

static inline int64_t offer(stage *s, int64_t length)
{
    const int64_t position = rig_offer(&s->publication, length);
    CHECK(position > 0);
    return position;
}

#define RUN_ON_STAGE(test) RUN_IN(stage, open_stage(&fixture), test, close_stage(&fixture))

#endif
