/* Goal: the metadata of a log hold what the channel asked for, because clients, stock ones too, and tools rely on them.
 * Method: memory_rig.h; each parameter of a channel away from its default, read back from the mapped file.
 * Spec: 02 §2.1, 03 §6.1, 04 §8.5. */
#include "memory_rig.h"
#include "wire/frame.h"

#define STREAM 1001
#define MS 1000000LL

static void check_publication(const asi_log *log, const rig_publication *publication, bool is_network)
{
    const asi_log_metadata *metadata = log->metadata;
    CHECK_I64(metadata->correlation_id, publication->ready.registration_id);
    CHECK_I64(metadata->initial_term_id, 7);
    CHECK_I64(metadata->default_header_length, AS_FRAME_HEADER_LENGTH);
    CHECK_I64(metadata->mtu_length, 4096);
    CHECK_I64(metadata->term_length, 128 * 1024);
    CHECK_I64(metadata->page_size, 4096);
    CHECK_I64(metadata->publication_window_length, 32768);
    CHECK_I64(metadata->max_resend, 5);
    CHECK_I64(metadata->entity_tag, 77);
    CHECK_I64(metadata->response_correlation_id, AS_NULL_VALUE);
    CHECK_I64(metadata->linger_timeout_ns, 1 * MS);
    CHECK_I64(metadata->untethered_window_limit_timeout_ns, 2 * MS);
    CHECK_I64(metadata->untethered_linger_timeout_ns, 3 * MS);
    CHECK_I64(metadata->untethered_resting_timeout_ns, 4 * MS);
    CHECK_I64(metadata->sparse, 0);
    CHECK_I64(metadata->signal_eos, 0);
    CHECK_I64(metadata->spies_simulate_connection, 1);
    CHECK_I64(metadata->is_response, 0);
    CHECK_I64(metadata->group, 0);
    CHECK_I64(metadata->is_publication_revoked, 0);
    CHECK_I64(metadata->end_of_stream_position, INT64_MAX);
    CHECK_I64(metadata->active_term_count, 2);
    CHECK_I64(metadata->tail_counters[2], asi_log_raw_tail(9, 64));
    CHECK_I64(metadata->socket_sndbuf_length, is_network ? 65536 : 0);
    CHECK_I64(metadata->socket_rcvbuf_length, is_network ? 131072 : 0);
    const asi_frame_header *header = (const asi_frame_header *)(const void *)metadata->default_header;
    CHECK_I64(header->session_id, 4711);
    CHECK_I64(header->stream_id, STREAM);
    CHECK_I64(header->term_id, 7);
    CHECK_I64(header->type, ASI_FRAME_DATA);
    CHECK_I64(header->flags, ASI_FLAG_UNFRAGMENTED);
}

static void publications(void)
{
    static const char PARAMS[] = "term-length=128k|mtu=4096|pub-wnd=32k|max-resend=5|tags=3,77|linger=1ms|sparse=false|eos=false|"
        "ssc=true|untethered-window-limit-timeout=2ms|untethered-linger-timeout=3ms|untethered-resting-timeout=4ms|session-id=4711|"
        "init-term-id=7|term-id=9|term-offset=64";
    for (int row = 0; row < 4; row++)
    {
        memory_rig m;
        char channel[512];
        rig_publication publication;
        const bool is_network = row < 2;
        const bool is_exclusive = 0 == row % 2;
        snprintf(channel, sizeof(channel), "%s%s", is_network ?
            "aeron:udp?endpoint=127.0.0.1:24100|so-sndbuf=64k|so-rcvbuf=128k|" : "aeron:ipc?", PARAMS);
        memory_rig_open(&m, NULL);
        rig_send_add(&m.rig, is_exclusive ? ASI_CMD_ADD_EXCLUSIVE_PUBLICATION : ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM, channel);
        rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
        rig_expect_publication(&m.rig, is_exclusive, &publication);
        CHECK_I64(publication.ready.session_id, 4711);
        check_publication(&publication.log, &publication, is_network);
        CHECK_I64(publication.log.metadata->type, is_exclusive ? ASI_LOG_EXCLUSIVE_PUBLICATION : ASI_LOG_CONCURRENT_PUBLICATION);
        /* Every position counter has its start position. */
        const int64_t begin = 2 * 128 * 1024 + 64;
        CHECK_I64(asi_append_position(&publication.appender), begin);
        CHECK_I64(*publication.limit, begin);
        static const int32_t TYPES[] = { ASI_COUNTER_TYPE_PUBLISHER_POSITION, ASI_COUNTER_TYPE_PUBLISHER_LIMIT,
            ASI_COUNTER_TYPE_SENDER_POSITION, ASI_COUNTER_TYPE_SENDER_LIMIT };
        for (int i = 0; i < (is_network ? 4 : 2); i++)
        {
            const int32_t id = asi_counters_find(&m.rig.counters, TYPES[i], NULL, NULL);
            CHECK(id >= 0);
            CHECK_I64(*asi_counter_addr(&m.rig.counters, id), begin);
            CHECK_I64(m.rig.counters.values[id].registration_id, 10);
            CHECK_I64(m.rig.counters.values[id].owner_id, 1);
            CHECK_I64(asi_get_i64(m.rig.counters.metadata[id].key), 10);
            CHECK_I64(asi_get_i32(m.rig.counters.metadata[id].key + 8), 4711);
            CHECK_I64(asi_get_i32(m.rig.counters.metadata[id].key + 12), STREAM);
        }
        asi_log_close(&publication.log);
        memory_rig_close(&m);
    }
}

/* What follows from the channel's kind. */
static void kinds_of_publications(void)
{
    static const struct { const char *channel; uint8_t group; uint8_t is_response; int64_t response_correlation_id; } ROWS[] = {
        { "aeron:udp?endpoint=127.0.0.1:24100|term-length=64k", 0, 0, AS_NULL_VALUE },
        { "aeron:udp?endpoint=224.20.30.39:24100|interface=127.0.0.1|term-length=64k", 1, 0, AS_NULL_VALUE },
        { "aeron:udp?control-mode=dynamic|control=127.0.0.1:24300|term-length=64k", 1, 0, AS_NULL_VALUE },
        { "aeron:udp?control-mode=manual|term-length=64k", 1, 0, AS_NULL_VALUE },
        { "aeron:udp?control-mode=response|control=127.0.0.1:24300|response-correlation-id=prototype|term-length=64k", 0, 1, -2 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        memory_rig m;
        rig_publication publication;
        memory_rig_open(&m, NULL);
        rig_send_add(&m.rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM, ROWS[i].channel);
        rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
        rig_expect_publication(&m.rig, false, &publication);
        const asi_log_metadata *metadata = publication.log.metadata;
        CHECK_I64(metadata->group, ROWS[i].group);
        CHECK_I64(metadata->is_response, ROWS[i].is_response);
        CHECK_I64(metadata->response_correlation_id, ROWS[i].response_correlation_id);
        CHECK_I64(metadata->sparse, 1); /* the rig's setting */
        CHECK_I64(metadata->signal_eos, 1);
        CHECK_I64(metadata->spies_simulate_connection, 0);
        CHECK_I64(metadata->entity_tag, AS_NULL_VALUE);
        asi_log_close(&publication.log);
        memory_rig_close(&m);
    }
}

static void images(void)
{
    static const struct { const char *params; uint8_t flags[5]; int64_t timeouts_ms[3]; uint8_t setup_flags; } ROWS[] = {
        /* group, rejoin, reliable, sparse, tether */
        { "", { 0, 1, 1, 1, 1 }, { 5000, 5000, 10000 }, 0 },
        { "|rejoin=false|reliable=false|sparse=false|tether=false", { 0, 0, 0, 0, 0 }, { 5000, 5000, 10000 }, 0 },
        { "|group=true", { 1, 1, 1, 1, 1 }, { 5000, 5000, 10000 }, 0 },
        { "", { 1, 1, 1, 1, 1 }, { 5000, 5000, 10000 }, ASI_SETUP_FLAG_GROUP },
        { "|group=false", { 0, 1, 1, 1, 1 }, { 5000, 5000, 10000 }, ASI_SETUP_FLAG_GROUP },
        { "|untethered-window-limit-timeout=20ms|untethered-linger-timeout=30ms|untethered-resting-timeout=40ms",
            { 0, 1, 1, 1, 1 }, { 20, 30, 40 }, 0 },
        { "|untethered-window-limit-timeout=20ms|untethered-linger-timeout=0", { 0, 1, 1, 1, 1 }, { 20, 20, 10000 }, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        memory_rig m;
        char channel[256];
        rig_image image;
        asi_log log;
        memory_rig_open(&m, NULL);
        snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:24000|so-sndbuf=64k|so-rcvbuf=128k%s", ROWS[i].params);
        rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, channel);
        rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
        rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 10);
        const asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .flags = ROWS[i].setup_flags,
            .type = ASI_FRAME_SETUP }, .session_id = 4711, .stream_id = STREAM, .initial_term_id = 7, .active_term_id = 9,
            .term_offset = 64, .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 4096 };
        memory_rig_cycles(&m, 3);
        memory_rig_send(&m, &setup, sizeof(setup), 24000);
        memory_rig_cycles(&m, 5);
        rig_expect_image(&m.rig, 10, &image);
        rig_map_log((const char *)m.rig.last.bytes + sizeof(image.available), image.available.log_file_name_length, &log);
        const asi_log_metadata *metadata = log.metadata;
        CHECK_I64(metadata->group, ROWS[i].flags[0]);
        CHECK_I64(metadata->rejoin, ROWS[i].flags[1]);
        CHECK_I64(metadata->reliable, ROWS[i].flags[2]);
        CHECK_I64(metadata->sparse, ROWS[i].flags[3]);
        CHECK_I64(metadata->tether, ROWS[i].flags[4]);
        CHECK_I64(metadata->is_response, 0);
        CHECK_I64(metadata->type, ASI_LOG_PUBLICATION_IMAGE);
        CHECK_I64(metadata->untethered_window_limit_timeout_ns, ROWS[i].timeouts_ms[0] * MS);
        CHECK_I64(metadata->untethered_linger_timeout_ns, ROWS[i].timeouts_ms[1] * MS);
        CHECK_I64(metadata->untethered_resting_timeout_ns, ROWS[i].timeouts_ms[2] * MS);
        CHECK_I64(metadata->initial_term_id, 7);
        CHECK_I64(metadata->mtu_length, 4096);
        CHECK_I64(metadata->socket_sndbuf_length, 65536);
        CHECK_I64(metadata->socket_rcvbuf_length, 131072);
        CHECK_I64(metadata->active_transport_count, 1);
        const asi_frame_header *header = (const asi_frame_header *)(const void *)metadata->default_header;
        CHECK_I64(header->session_id, 4711);
        CHECK_I64(header->stream_id, STREAM);
        CHECK_I64(header->term_id, 7);
        CHECK_I64(*image.position, 2 * AS_TERM_MIN_LENGTH + 64);
        asi_log_close(&log);
        memory_rig_close(&m);
    }
}

int main(void)
{
    RUN(publications);
    RUN(kinds_of_publications);
    RUN(images);
    return 0;
}
