/* Goal: columns of messages that are longer than the receiver window over UDP are the published messages, nothing behind them is
 * held up, and the image's position is right. Method: our driver with its default window of 128 KiB, a client invoked on
 * the same thread, and UDP over loopback. Spec: 02 §8, 04 §8. */
#include "ports.h"
#include "world.h"

#define LONG 200000
#define WINDOW 131072
#define ROWS 16

/* Messages of all publications are numbered; the number is the reserved value. */
typedef struct sent
{
    int64_t length;
    int64_t begin;
    int64_t end;
    int32_t session_id;
} sent;

typedef struct udp
{
    world *w;
    char channel[128];
    as_subscription *subscription;
    as_publication *publications[2];
    as_image *images[2]; /* retained */
    sent sent[ROWS];
    int64_t sent_count;
} udp;

static uint8_t bytes[4 * LONG];
static int64_t position[ROWS];
static int64_t next_position[ROWS];
static int64_t reserved_value[ROWS];
static int32_t session_id[ROWS];
static int32_t stream_id[ROWS];
static int32_t term_id[ROWS];
static int32_t term_offset[ROWS];
static uint8_t flags[ROWS];
static int32_t value_offset[ROWS + 1];

static as_columns columns_of(int64_t byte_capacity)
{
    return (as_columns){ .row_capacity = ROWS, .byte_capacity = byte_capacity, .position = position, .next_position = next_position,
        .reserved_value = reserved_value, .session_id = session_id, .stream_id = stream_id, .term_id = term_id,
        .term_offset = term_offset, .flags = flags, .value_offset = value_offset, .value = bytes };
}

static int32_t session_of(const as_publication *publication)
{
    as_publication_constants constants;
    as_publication_get_constants(publication, &constants);
    return constants.session_id;
}

static udp open_udp(world *w, const char *params, int count)
{
    udp u = { .w = w };
    snprintf(u.channel, sizeof(u.channel), "aeron:udp?endpoint=127.0.0.1:%d|term-length=2m%s", free_ports(1), params);
    u.subscription = world_subscription(w, u.channel);
    for (int i = 0; i < count; i++)
    {
        u.publications[i] = world_publication(w, u.channel, true);
        AWAIT(w, NULL != (u.images[i] = as_subscription_image_by_session(u.subscription, session_of(u.publications[i]))));
        AWAIT(w, as_publication_is_connected(u.publications[i]) && as_publication_position_limit(u.publications[i]) > 0);
    }
    return u;
}

static void close_udp(udp *u)
{
    for (int i = 0; i < 2; i++)
    {
        as_image_release(u->images[i]);
        if (NULL != u->publications[i])
        {
            as_publication_close(u->publications[i]);
        }
    }
    as_subscription_close(u->subscription);
}

static void publish(udp *u, int which, int64_t length)
{
    static uint8_t data[LONG];
    as_publication *publication = u->publications[which];
    const int64_t number = u->sent_count++;
    fill_payload(data, number, length);
    const int32_t offsets[2] = { 0, (int32_t)length };
    const as_messages messages = { .count = 1, .data = data, .offsets32 = offsets, .reserved_values = &number };
    u->sent[number] = (sent){ .length = length, .begin = as_publication_position(publication), .session_id = session_of(publication) };
    as_offer_outcome outcome;
    CHECK_I64(as_publication_offer_messages(publication, &messages, TIMEOUT_NS, &outcome), AS_OK);
    u->sent[number].end = outcome.position;
}

static void check_row(const udp *u, const as_columns *columns, int64_t row)
{
    CHECK(reserved_value[row] >= 0 && reserved_value[row] < u->sent_count);
    const sent *message = &u->sent[reserved_value[row]];
    CHECK_I64(position[row], message->begin);
    CHECK_I64(next_position[row], message->end);
    CHECK_I64(session_id[row], message->session_id);
    CHECK_I64(stream_id[row], STREAM);
    CHECK_I64(term_offset[row], message->begin);
    CHECK_I64(flags[row], 0xC0);
    CHECK_I64(value_offset[row + 1] - value_offset[row], message->length);
    check_payload(columns->value + value_offset[row], reserved_value[row], message->length);
}

/* Each message comes once, and those of one publication in their order. */
static void check_all_come(udp *u, as_image *image)
{
    int64_t last[2] = { -1, -1 };
    int64_t count = 0;
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    while (count < u->sent_count)
    {
        CHECK(test_now_ns() < deadline_ns && "all messages have come");
        as_columns columns = columns_of(sizeof(bytes));
        CHECK_I64(NULL == image ? as_subscription_poll_columns(u->subscription, &columns, 0) :
            as_image_poll_columns(image, &columns, 0), AS_OK);
        for (int64_t row = 0; row < columns.row_count; row++)
        {
            check_row(u, &columns, row);
            const int which = session_id[row] == session_of(u->publications[0]) ? 0 : 1;
            CHECK(reserved_value[row] > last[which]);
            last[which] = reserved_value[row];
        }
        count += columns.row_count;
        world_turn(u->w);
    }
    CHECK_I64(count, u->sent_count);
}

/* As much of a long message as comes without its end. The image stays at its begin. */
static void poll_begin_of_long_message(udp *u, int64_t begin)
{
    as_columns columns = columns_of(sizeof(bytes));
    do
    {
        world_turn(u->w);
        CHECK_I64(as_image_poll_columns(u->images[0], &columns, 0), AS_OK);
        CHECK_I64(columns.row_count, 0);
        CHECK_I64(as_image_position(u->images[0]), begin);
    } while (as_image_flow_position(u->images[0]) == begin);
    CHECK(!as_image_is_end_of_stream(u->images[0]));
}

static void alone_and_between_short_ones(world *w)
{
    static const int64_t LENGTHS[][4] = { { LONG }, { 10, LONG, 10, 5000 }, { LONG, LONG, LONG, 0 } };
    for (int i = 0; i < 6; i++)
    {
        udp u = open_udp(w, "", 1);
        for (int at = 0; at < 4 && (0 == at || LENGTHS[i / 2][at] > 0); at++)
        {
            publish(&u, 0, LENGTHS[i / 2][at]);
        }
        check_all_come(&u, 0 == i % 2 ? u.images[0] : NULL);
        CHECK_I64(as_image_position(u.images[0]), as_publication_position(u.publications[0]));
        CHECK_I64(as_image_flow_position(u.images[0]), as_publication_position(u.publications[0]));
        close_udp(&u);
    }
}

/* Congestion control begins with a window of one MTU. */
static void window_of_one_frame(world *w)
{
    udp u = open_udp(w, "|cc=cubic", 1);
    publish(&u, 0, 5000);
    publish(&u, 0, LONG);
    check_all_come(&u, u.images[0]);
    close_udp(&u);
}

static void two_images_in_turns(world *w)
{
    udp u = open_udp(w, "", 2);
    for (int i = 0; i < 12; i++)
    {
        publish(&u, i % 2, 0 == i % 3 ? LONG : 100);
    }
    check_all_come(&u, NULL);
    close_udp(&u);
}

static void longer_than_the_columns(world *w)
{
    udp u = open_udp(w, "", 1);
    publish(&u, 0, 10);
    publish(&u, 0, LONG);
    publish(&u, 0, 10);
    as_columns columns = columns_of(LONG - 1);
    CHECK_I64(as_image_poll_columns(u.images[0], &columns, TIMEOUT_NS), AS_OK);
    CHECK_I64(columns.row_count, 1);
    as_result result;
    AWAIT(w, AS_OK != (result = as_image_poll_columns(u.images[0], &columns, 0)));
    for (int i = 0; i < 3; i++)
    {
        CHECK_I64(result, AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "position 64 of") && NULL != strstr(as_error_text(), "200000 bytes"));
        CHECK_I64(as_image_position(u.images[0]), 64);
        world_turn(w);
        result = as_image_poll_columns(u.images[0], &columns, 0);
    }
    columns = columns_of(LONG);
    CHECK_I64(as_image_poll_columns(u.images[0], &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 1);
    check_row(&u, &columns, 0);
    CHECK_I64(as_image_poll_columns(u.images[0], &columns, TIMEOUT_NS), AS_OK);
    CHECK_I64(columns.row_count, 1);
    check_row(&u, &columns, 0);
    close_udp(&u);
}

static void count_bytes(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)header;
    *(int64_t *)context += length;
}

/* Fragments that columns have not given are there for polls of fragments, and the counter never goes back. */
static void polls_of_fragments_begin_where_columns_ended(world *w)
{
    udp u = open_udp(w, "", 1);
    publish(&u, 0, LONG);
    poll_begin_of_long_message(&u, 0);
    int64_t length = 0;
    CHECK_I64(as_image_poll(u.images[0], count_bytes, &length, 1), 1);
    CHECK(as_image_position(u.images[0]) > 0);
    CHECK(as_image_flow_position(u.images[0]) > as_image_position(u.images[0]));
    int64_t flow_position = 0;
    AWAIT(w, as_image_poll(u.images[0], count_bytes, &length, 10) >= 0 && as_image_flow_position(u.images[0]) >= flow_position &&
        (flow_position = as_image_flow_position(u.images[0])) >= 0 && LONG == length);
    CHECK_I64(as_image_position(u.images[0]), u.sent[0].end);
    close_udp(&u);
}

/* The log of an IPC publication is erased up to the counter. */
static void ipc_keeps_the_fragments(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    as_buffer_claim claim;
    CHECK(as_publication_try_claim(p.publication, 40, &claim) > 0);
    claim.frame[5] = 0x80; /* BEGIN without END */
    as_buffer_claim_commit(&claim);
    as_columns columns = columns_of(sizeof(bytes));
    CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 0);
    CHECK_I64(as_image_flow_position(p.image), 0);
    world_close_pair(&p);
}

static void append_fragment(as_publication *publication, int64_t length, uint8_t frame_flags)
{
    as_buffer_claim claim;
    CHECK(as_publication_try_claim(publication, length, &claim) > 0);
    claim.frame[5] = frame_flags;
    as_buffer_claim_commit(&claim);
}

/* Over IPC, appended by fragments as a replay does, a message that its publisher can never finish is an error as soon as that is
 * certain; polls of fragments take it. One that fits comes. `before` makes the limit lag behind the counter by that much. */
static void longer_than_the_window_over_ipc(world *w)
{
    static const struct { int32_t before; bool is_long; } CASES[] = { { 0, true }, { 1024, true }, { 0, false }, { 1024, false } };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
    {
        pair p = world_pair(w, "aeron:ipc?term-length=2m|pub-wnd=64k", true);
        as_columns columns = columns_of(sizeof(bytes));
        if (CASES[i].before > 0)
        {
            append_fragment(p.publication, CASES[i].before - AS_FRAME_HEADER_LENGTH, 0xC0);
            CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
            CHECK_I64(columns.row_count, 1);
            world_turn(w);
        }
        const int64_t begin = as_publication_position(p.publication);
        const int64_t end = CASES[i].is_long ? INT64_MAX : begin + 56 * 1024;
        uint8_t frame_flags = 0x80;
        while (as_publication_position(p.publication) < as_publication_position_limit(p.publication) && frame_flags < 0xC0)
        {
            CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
            CHECK_I64(columns.row_count, 0);
            frame_flags |= as_publication_position(p.publication) + 2048 >= end ? 0x40 : 0;
            append_fragment(p.publication, 1024 - AS_FRAME_HEADER_LENGTH, frame_flags);
            frame_flags = 0 != (frame_flags & 0x40) ? 0xC0 : 0;
            world_turn(w);
        }
        if (!CASES[i].is_long)
        {
            CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
            CHECK_I64(columns.row_count, 1);
            world_close_pair(&p);
            continue;
        }
        CHECK_I64(as_image_poll_columns(p.image, &columns, TIMEOUT_NS), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "aeron.ipc.publication.term.window.length"));
        CHECK_I64(as_image_position(p.image), begin);
        int64_t length = 0;
        CHECK(as_image_poll(p.image, count_bytes, &length, 1000) > 0);
        AWAIT(w, as_publication_position_limit(p.publication) > as_publication_position(p.publication));
        append_fragment(p.publication, 10, 0x40);
        CHECK_I64(as_image_poll(p.image, count_bytes, &length, 1000), 1);
        CHECK_I64(as_image_position(p.image), as_publication_position(p.publication));
        world_close_pair(&p);
    }
}

/* Publishes fragments without an END, more than the window holds, after a whole message. Returns where the stream ends. */
static int64_t publish_without_end(udp *u)
{
    as_publication_constants constants;
    as_publication_get_constants(u->publications[0], &constants);
    publish(u, 0, 10);
    bool is_first = true;
    as_columns columns = columns_of(sizeof(bytes));
    CHECK_I64(as_image_poll_columns(u->images[0], &columns, TIMEOUT_NS), AS_OK);
    while (as_publication_position(u->publications[0]) < 2 * WINDOW)
    {
        as_buffer_claim claim;
        AWAIT(u->w, as_publication_try_claim(u->publications[0], constants.max_payload_length, &claim) > 0);
        claim.frame[5] = is_first ? 0x80 : 0;
        as_buffer_claim_commit(&claim);
        is_first = false;
    }
    return as_publication_position(u->publications[0]);
}

/* The message without an end is passed over at the end of the stream, also when nobody polls after it: the driver closes an
 * image that has been read to its end. */
static void publisher_that_ends_within_a_message(void)
{
    for (int is_polled_after = 0; is_polled_after < 2; is_polled_after++)
    {
        world w;
        world_open(&w, false);
        udp u = open_udp(&w, "", 1);
        const int64_t end = publish_without_end(&u);
        as_columns columns = columns_of(sizeof(bytes));
        AWAIT(&w, AS_OK == as_image_poll_columns(u.images[0], &columns, 0) && as_image_flow_position(u.images[0]) == end);
        CHECK_I64(as_image_position(u.images[0]), 64);
        as_publication_close(u.publications[0]);
        u.publications[0] = NULL;
        AWAIT(&w, as_image_is_closed(u.images[0]) ||
            (is_polled_after && AS_OK == as_image_poll_columns(u.images[0], &columns, 0) && as_image_is_end_of_stream(u.images[0])));
        CHECK(!is_polled_after == as_image_is_closed(u.images[0]));
        CHECK(as_image_is_end_of_stream(u.images[0]));
        CHECK_I64(as_image_position(u.images[0]), end);
        close_udp(&u);
        world_close(&w);
    }
}

/* An image that is lost within a message stands at its begin, where another reader would have to go on. */
static void image_lost_within_a_message(void)
{
    world w;
    world_open(&w, false);
    udp u = open_udp(&w, "", 1);
    publish(&u, 0, LONG);
    poll_begin_of_long_message(&u, 0);
    as_subscription_close(u.subscription);
    CHECK(as_image_is_closed(u.images[0]) && !as_image_is_end_of_stream(u.images[0]));
    CHECK_I64(as_image_position(u.images[0]), 0);
    as_image_release(u.images[0]);
    as_publication_close(u.publications[0]);
    world_close(&w);
}

int main(void)
{
    RUN_IN_WORLD(alone_and_between_short_ones);
    RUN_IN_WORLD(window_of_one_frame);
    RUN_IN_WORLD(two_images_in_turns);
    RUN_IN_WORLD(longer_than_the_columns);
    RUN_IN_WORLD(polls_of_fragments_begin_where_columns_ended);
    RUN_IN_WORLD(ipc_keeps_the_fragments);
    RUN_IN_WORLD(longer_than_the_window_over_ipc);
    RUN(publisher_that_ends_within_a_message);
    RUN(image_lost_within_a_message);
    return 0;
}
