/* Captured datagrams of stock drivers, played to our receiver: every datagram passes the checks of its side; our image logs
 * hold the streams as the stock subscriber read them; our answers are those of the stock receiver, byte for byte except ids
 * and positions that depend on random numbers and timing. */
#include "pcap.h"
#include "rig.h"
#include "term/frame_walk.h"
#include "wire/frame_check.h"

static const char *const captures[] = {
    "udp/unicast.pcap", "udp/loss.pcap", "udp/reject.pcap", "udp/rttm-start.pcap", "udp/response.pcap", "udp/ipv6.pcap",
    "udp/eos.pcap", "udp/revoke.pcap"
};

static bool is_control(uint16_t type)
{
    return ASI_FRAME_NAK == type || ASI_FRAME_STATUS == type || ASI_FRAME_ERROR == type || ASI_FRAME_RESPONSE_SETUP == type;
}

static void every_datagram_passes_its_check(void)
{
    static pcap_datagram datagram;
    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
    {
        int32_t count = 0;
        pcap_reader reader = pcap_open(captures[i]);
        while (pcap_next(&reader, &datagram))
        {
            const asi_frame_prefix *prefix = (const asi_frame_prefix *)(void *)datagram.bytes;
            const asi_datagram_verdict data = asi_check_data_datagram_untrusted(datagram.bytes, datagram.length);
            const asi_datagram_verdict control = asi_check_control_datagram_untrusted(datagram.bytes, datagram.length);
            const bool is_both = ASI_FRAME_RTTM == prefix->type;
            CHECK_I64(data, !is_control(prefix->type) || is_both ? ASI_DATAGRAM_ACCEPTED : ASI_DATAGRAM_IGNORED);
            CHECK_I64(control, is_control(prefix->type) || is_both ? ASI_DATAGRAM_ACCEPTED : ASI_DATAGRAM_IGNORED);
            if (ASI_FRAME_DATA == prefix->type && !asi_is_heartbeat(datagram.bytes, datagram.length))
            {
                CHECK_I64(asi_data_extent_untrusted(datagram.bytes, datagram.length), datagram.length);
            }
            if (ASI_FRAME_ERROR == prefix->type)
            {
                CHECK_I64(((const asi_error_frame *)(const void *)datagram.bytes)->error_length, datagram.length - 40);
            }
            count++;
        }
        CHECK(count > 0);
        pcap_close(&reader);
    }
}

/* --- streams come out as they were read --- */

#define MAX_MESSAGES 512
#define MAX_MESSAGE_LENGTH (64 * 1024)

typedef struct message
{
    int64_t end_position;
    int32_t length;
    uint32_t crc;
    int64_t reserved_value;
    int32_t session_id;
} message;

typedef struct stream_reader
{
    int64_t position;
    int32_t length;
    uint8_t bytes[MAX_MESSAGE_LENGTH];
} stream_reader;

static uint32_t crc32_of(const uint8_t *bytes, int32_t length)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (int32_t i = 0; i < length; i++)
    {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
        {
            crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
        }
    }
    return ~crc;
}

static message read_messages[MAX_MESSAGES];
static int32_t read_count;

static void on_frame(stream_reader *reader, const asi_frame_header *frame, int64_t end_position)
{
    const int32_t payload = frame->frame_length - AS_FRAME_HEADER_LENGTH;
    if (asi_frame_is_padding(frame))
    {
        return;
    }
    if (0 != (frame->flags & ASI_FLAG_BEGIN))
    {
        reader->length = 0;
    }
    CHECK(reader->length + payload <= MAX_MESSAGE_LENGTH);
    memcpy(reader->bytes + reader->length, frame + 1, (size_t)payload);
    reader->length += payload;
    if (0 != (frame->flags & ASI_FLAG_END))
    {
        CHECK(read_count < MAX_MESSAGES);
        read_messages[read_count++] = (message){ .end_position = end_position, .length = reader->length,
            .crc = crc32_of(reader->bytes, reader->length), .reserved_value = frame->reserved_value,
            .session_id = frame->session_id };
    }
}

static void read_image(asi_rx_image *image, stream_reader *reader)
{
    const asi_log *log = &image->log;
    while (reader->position < image->rebuild_position)
    {
        const int64_t offset = reader->position & (log->term_length - 1);
        asi_frame_walk walk = asi_frame_walk_start(
            log->terms[asi_log_index_of_position(reader->position, log->position_bits)], offset, log->term_length,
            log->term_length);
        const int64_t base = reader->position - offset;
        while (base + walk.offset < image->rebuild_position && ASI_WALK_FRAME == asi_frame_walk_next(&walk))
        {
            on_frame(reader, walk.frame, base + walk.offset);
        }
        CHECK(base + walk.offset > reader->position);
        reader->position = base + walk.offset;
    }
}

static int32_t load_expected(const char *name, message *expected)
{
    int64_t length;
    char *text = (char *)golden_load(name, &length);
    int32_t count = 0;
    char *rest;
    strtok_r(text, "\n", &rest);
    for (char *line = strtok_r(NULL, "\n", &rest); NULL != line; line = strtok_r(NULL, "\n", &rest))
    {
        message *row = &expected[count++];
        CHECK(count < MAX_MESSAGES);
        CHECK(5 == sscanf(line, "%*d,%" SCNd64 ",%d,%x,%" SCNd64 ",%d", &row->end_position, &row->length, &row->crc,
            &row->reserved_value, &row->session_id));
    }
    free(text);
    return count;
}

/* Plays a capture by its own times; our receiver reads at once, so nothing is ever beyond its window. */
static void play(rx_rig *rig, const char *name, stream_reader *readers)
{
    static pcap_datagram datagram;
    pcap_reader reader = pcap_open(name);
    const int64_t start_ns = rig->now_ns;
    while (pcap_next(&reader, &datagram))
    {
        const asi_frame_prefix *prefix = (const asi_frame_prefix *)(void *)datagram.bytes;
        if (is_control(prefix->type) || ASI_FRAME_RTTM == prefix->type)
        {
            continue;
        }
        rig->now_ns = start_ns + datagram.time_ns > rig->now_ns ? start_ns + datagram.time_ns : rig->now_ns;
        peer_send(rig, datagram.bytes, datagram.length);
        for (int i = 0; i < 3; i++)
        {
            rig_cycles(rig, 1);
            for (int32_t k = 0; k < rig->image_count; k++)
            {
                readers[k].position = readers[k].position > 0 ? readers[k].position : rig->images[k]->join_position;
                read_image(rig->images[k], &readers[k]);
            }
        }
    }
    pcap_close(&reader);
}

static void streams_come_out_as_they_were_read(void)
{
    static const struct
    {
        const char *capture;
        const char *messages;
        int32_t streams[2];
    } rows[] = {
        { "udp/unicast.pcap", "udp/unicast-messages.csv", { 1001 } },
        { "udp/loss.pcap", "udp/loss-messages.csv", { 1001 } },
        { "udp/reject.pcap", "udp/reject-messages.csv", { 1001 } },
        { "udp/response.pcap", "udp/response-messages.csv", { 10000, 10001 } },
        { "udp/ipv6.pcap", "udp/ipv6-messages.csv", { 1001 } },
        { "udp/eos.pcap", "udp/eos-messages.csv", { 1001 } },
        { "udp/revoke.pcap", "udp/revoke-messages.csv", { 1001 } },
    };
    static message expected[MAX_MESSAGES];
    static stream_reader readers[RIG_IMAGES];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        rx_rig rig;
        const rig_options options = { .no_interest = true };
        memset(readers, 0, sizeof(readers));
        read_count = 0;
        rig_open(&rig, &options);
        for (int k = 0; k < 2 && 0 != rows[i].streams[k]; k++)
        {
            rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_STREAM, .stream_id = rows[i].streams[k] });
            rig_cycles(&rig, 1);
        }
        play(&rig, rows[i].capture, readers);
        const int32_t count = load_expected(rows[i].messages, expected);
        for (int32_t k = 0; k < count; k++)
        {
            const message *want = &expected[k];
            int32_t found = 0;
            for (int32_t m = 0; m < read_count; m++)
            {
                const message *got = &read_messages[m];
                found += got->session_id == want->session_id && got->end_position == want->end_position &&
                    got->length == want->length && got->crc == want->crc && got->reserved_value == want->reserved_value;
            }
            CHECK_I64(found, 1);
        }
        CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), 0);
        CHECK_I64(rig_counter(&rig, ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS), 0);
        printf("   %s: %d messages read there, %d here, %d images\n", rows[i].capture, count, read_count, rig.image_count);
        rig_close(&rig);
    }
}

/* --- our answers are theirs --- */

/* First datagram of `type` in a capture that `matches`. */
static void find_golden(const char *name, uint16_t type, uint8_t flags, pcap_datagram *found)
{
    pcap_reader reader = pcap_open(name);
    bool is_found = false;
    while (!is_found && pcap_next(&reader, found))
    {
        const asi_frame_prefix *prefix = (const asi_frame_prefix *)(void *)found->bytes;
        is_found = type == prefix->type && flags == prefix->flags;
    }
    CHECK(is_found);
    pcap_close(&reader);
}

/* SETUP of the capture, and a receiver with its image. */
static void join_golden(rx_rig *rig, const char *name, const rig_options *options, uint8_t setup_flags)
{
    static pcap_datagram setup;
    rig_open(rig, options);
    find_golden(name, ASI_FRAME_SETUP, setup_flags, &setup);
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_STREAM,
        .stream_id = ((asi_setup_frame *)(void *)setup.bytes)->stream_id });
    rig_cycles(rig, 1);
    peer_send(rig, setup.bytes, setup.length);
    rig_cycles(rig, 3);
    CHECK_I64(rig->image_count, 1);
    peer_send(rig, setup.bytes, setup.length); /* answers are limited by the received bytes */
    rig_cycles(rig, 1);
}

static void status_messages_are_theirs(void)
{
    static pcap_datagram golden;
    rx_rig rig;
    const rig_options options = { .no_interest = true };
    join_golden(&rig, "udp/unicast.pcap", &options, 0);
    find_golden("udp/unicast.pcap", ASI_FRAME_STATUS, 0, &golden);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_STATUS), golden.length);
    asi_status_frame *theirs = (asi_status_frame *)(void *)golden.bytes;
    theirs->receiver_id = RIG_RECEIVER_ID;
    CHECK(0 == memcmp(rig.got.bytes, golden.bytes, (size_t)golden.length));
    /* EOS SMs carry the flag and a position; Spec: 04 §8.7 R3. */
    find_golden("udp/eos.pcap", ASI_FRAME_STATUS, ASI_STATUS_FLAG_EOS, &golden);
    asi_store_release_bool(&rig.images[0]->is_sending_eos_sm, true);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_STATUS), golden.length);
    CHECK(0 == memcmp(rig.got.bytes, golden.bytes, 8));
    rig_close(&rig);
}

static void naks_are_theirs(void)
{
    static pcap_datagram golden;
    rx_rig rig;
    const rig_options options = { .no_interest = true };
    join_golden(&rig, "udp/loss.pcap", &options, 0);
    asi_rx_image *image = rig.images[0];
    find_golden("udp/loss.pcap", ASI_FRAME_NAK, 0, &golden);
    const asi_nak_frame *theirs = (const asi_nak_frame *)(void *)golden.bytes;
    const asi_gap gap = { .term_id = theirs->term_id, .term_offset = theirs->term_offset, .length = theirs->length };
    asi_rx_image_publish_gap(image, &gap);
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), golden.length);
    CHECK(0 == memcmp(rig.got.bytes, golden.bytes, (size_t)golden.length));
    rig_close(&rig);
}

static void error_frames_are_theirs(void)
{
    static pcap_datagram golden;
    static const char *const names[] = { "udp/reject.pcap", "udp/ipv6.pcap" };
    for (int i = 0; i < 2; i++)
    {
        rx_rig rig;
        const rig_options options = { .no_interest = true };
        join_golden(&rig, names[i], &options, 0);
        find_golden(names[i], ASI_FRAME_ERROR, 0, &golden);
        asi_error_frame *theirs = (asi_error_frame *)(void *)golden.bytes;
        memcpy(rig.images[0]->rejection_reason, golden.bytes + 40, (size_t)theirs->error_length);
        rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REJECT_IMAGE, .image = rig.images[0] });
        rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
        CHECK_I64(peer_receive(&rig, ASI_FRAME_ERROR), golden.length);
        theirs->receiver_id = RIG_RECEIVER_ID;
        CHECK(0 == memcmp(rig.got.bytes, golden.bytes, (size_t)golden.length));
        rig_close(&rig);
    }
}

static void response_setups_are_theirs(void)
{
    static pcap_datagram golden;
    rx_rig rig;
    const rig_options options = { .no_interest = true };
    join_golden(&rig, "udp/response.pcap", &options, ASI_SETUP_FLAG_RESPONSE);
    CHECK_I64(rig.create.flags, ASI_SETUP_FLAG_RESPONSE);
    find_golden("udp/response.pcap", ASI_FRAME_RESPONSE_SETUP, 0, &golden);
    const asi_response_setup_frame *theirs = (const asi_response_setup_frame *)(void *)golden.bytes;
    asi_store_release_i64(&rig.images[0]->response_session_id, theirs->response_session_id);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_RESPONSE_SETUP), golden.length);
    CHECK(0 == memcmp(rig.got.bytes, golden.bytes, (size_t)golden.length));
    rig_close(&rig);
}

/* Spec: 04 §10.3 - window of the first status message, and the request. */
static void cubic_is_theirs(void)
{
    static pcap_datagram golden;
    rx_rig rig;
    int64_t rtt = 0;
    int64_t window = 0;
    const rig_options options = { .no_interest = true, .congestion = { .kind = ASI_CONGESTION_CUBIC,
        .is_measuring_rtt = true, .initial_rtt_ns = 100 * RIG_US, .rtt_counter = &rtt, .window_counter = &window } };
    join_golden(&rig, "udp/rttm-start.pcap", &options, 0);
    find_golden("udp/rttm-start.pcap", ASI_FRAME_RTTM, ASI_RTTM_FLAG_REQUEST, &golden);
    rig_pass(&rig, 500 * RIG_US, 100 * RIG_US);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_RTTM), golden.length);
    asi_rttm_frame *theirs = (asi_rttm_frame *)(void *)golden.bytes;
    const asi_rttm_frame *ours = (const asi_rttm_frame *)(void *)rig.got.bytes;
    CHECK_I64(theirs->reception_delta_ns, 0);
    theirs->receiver_id = RIG_RECEIVER_ID;
    theirs->echo_timestamp_ns = ours->echo_timestamp_ns;
    CHECK(0 == memcmp(rig.got.bytes, golden.bytes, (size_t)golden.length));
    rig_close(&rig);
}

int main(void)
{
    RUN(every_datagram_passes_its_check);
    RUN(streams_come_out_as_they_were_read);
    RUN(status_messages_are_theirs);
    RUN(naks_are_theirs);
    RUN(error_frames_are_theirs);
    RUN(response_setups_are_theirs);
    RUN(cubic_is_theirs);
    return 0;
}
