/* Goal: published messages are polled whole and in order, with every way of publishing and of polling, and each refusal
 * has its code. Method: our driver and a client in invoker mode on one thread; a rule gives the payloads.
 * Spec: 02 §10.1-10.3, §10, 11 C4. */
#include "world.h"

#include "client/state.h"
#include "wire/frame.h"

typedef struct sink
{
    int64_t count;
    int64_t next_number;
    const int64_t *lengths; /* of message i, NULL: any */
    int64_t last_position;
    uint8_t last_flags;
    int64_t last_reserved_value;
    int64_t last_length;
} sink;

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    sink *s = context;
    if (NULL != s->lengths)
    {
        CHECK_I64(length, s->lengths[s->count]);
    }
    check_payload(data, s->next_number++, length);
    s->count++;
    s->last_position = header->position;
    s->last_flags = header->flags;
    s->last_reserved_value = header->reserved_value;
    s->last_length = length;
    CHECK_I64(header->stream_id, STREAM);
    CHECK(NULL != header->image);
}

static void poll_until(world *w, as_subscription *subscription, sink *s, int64_t count)
{
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_message, s, &assembler), AS_OK);
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    while (s->count < count)
    {
        CHECK(test_now_ns() < deadline_ns);
        CHECK(as_subscription_poll(subscription, as_fragment_assembler_on_fragment, assembler, 10) >= 0);
        world_turn(w);
    }
    as_fragment_assembler_close(assembler);
}

static int64_t offer(world *w, as_publication *publication, const uint8_t *data, int64_t length)
{
    int64_t position;
    AWAIT(w, (position = as_publication_offer(publication, data, length)) > 0 ||
        (AS_BACK_PRESSURED != position && AS_ADMIN_ACTION != position));
    return position;
}

/* Lengths around every boundary; max message of a 64k term is 8192. */
static void sizes_of_both_kinds(world *w)
{
    static const int64_t LENGTHS[] = { 0, 1, 31, 32, 33, 64, 1375, 1376, 1377, 2751, 2752, 2753, 5000, 8191, 8192, 0, 7 };
    const int64_t count = (int64_t)(sizeof(LENGTHS) / sizeof(LENGTHS[0]));
    for (int exclusive = 0; exclusive < 2; exclusive++)
    {
        pair p = world_pair(w, IPC_64K, exclusive);
        sink s = { .lengths = LENGTHS };
        uint8_t data[8192];
        for (int64_t i = 0; i < count; i++)
        {
            fill_payload(data, i, LENGTHS[i]);
            const int64_t before = as_publication_position(p.publication);
            const int64_t position = offer(w, p.publication, data, LENGTHS[i]);
            CHECK(position > before && 0 == position % 32);
            CHECK_I64(as_publication_position(p.publication), position);
            poll_until(w, p.subscription, &s, i + 1);
            CHECK_I64(s.last_position, position);
            CHECK_I64(s.last_flags, 0xC0);
            CHECK_I64(as_image_position(p.image), position);
        }
        world_close_pair(&p);
    }
}

static int64_t reserved_of_frame(void *context, uint8_t *frame, int64_t frame_length)
{
    (*(int64_t *)context)++;
    CHECK(frame_length > 32);
    return frame[32] + 1000;
}

static void vectors_and_reserved_values(world *w)
{
    pair p = world_pair(w, IPC_64K, false);
    uint8_t data[3000];
    fill_payload(data, 0, sizeof(data));
    const as_iovec parts[] = { { data, 100 }, { NULL, 0 }, { data + 100, 1500 }, { data + 1600, 1400 } };
    int64_t supplied = 0;
    CHECK(as_publication_offerv(p.publication, parts, 4, reserved_of_frame, &supplied) > 0);
    CHECK_I64(supplied, 3); /* once a frame */
    sink s = { 0 };
    poll_until(w, p.subscription, &s, 1);
    CHECK_I64(s.last_length, 3000);
    CHECK_I64(s.last_reserved_value, data[0] + 1000);
    CHECK(as_publication_offerv(p.publication, NULL, 0, NULL, NULL) > 0);
    poll_until(w, p.subscription, &s, 2);
    CHECK_I64(s.last_length, 0);
    world_close_pair(&p);
}

static void claims(world *w)
{
    for (int exclusive = 0; exclusive < 2; exclusive++)
    {
        pair p = world_pair(w, IPC_64K, exclusive);
        sink s = { 0 };
        as_buffer_claim claim;
        const int64_t aborted = as_publication_try_claim(p.publication, 50, &claim);
        CHECK_I64(aborted, 96);
        as_buffer_claim_abort(&claim);
        const int64_t position = as_publication_try_claim(p.publication, 77, &claim);
        CHECK_I64(position, 96 + 128);
        CHECK_I64(claim.length, 77);
        CHECK_I64(as_subscription_poll(p.subscription, on_message, &s, 10), 0); /* nothing before commit */
        fill_payload(claim.data, 0, 77);
        as_buffer_claim_commit(&claim);
        poll_until(w, p.subscription, &s, 1);
        CHECK_I64(s.last_position, position); /* the aborted one was passed over as padding */
        world_close_pair(&p);
    }
}

static void back_pressure_and_connection(world *w)
{
    as_publication *alone = world_publication(w, IPC_64K, true);
    uint8_t data[992];
    fill_payload(data, 0, sizeof(data));
    CHECK_I64(as_publication_offer(alone, data, sizeof(data)), AS_NOT_CONNECTED);
    CHECK(!as_publication_is_connected(alone));
    as_publication_close(alone);
    for (int exclusive = 0; exclusive < 2; exclusive++)
    {
        pair p = world_pair(w, IPC_64K, exclusive);
        CHECK_I64(as_publication_available_window(p.publication), 32768);
        int64_t published = 0;
        int64_t position;
        while ((position = as_publication_offer(p.publication, data, sizeof(data))) > 0)
        {
            fill_payload(data, ++published, sizeof(data));
            world_turn(w);
        }
        CHECK_I64(position, AS_BACK_PRESSURED);
        CHECK_I64(published, 32); /* half a term of 1024 byte frames */
        as_buffer_claim claim;
        CHECK_I64(as_publication_try_claim(p.publication, 10, &claim), AS_BACK_PRESSURED);
        sink s = { 0 };
        poll_until(w, p.subscription, &s, published);
        CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
        poll_until(w, p.subscription, &s, published + 1);
        fill_payload(data, 0, sizeof(data));
        world_close_pair(&p);
    }
}

static void many_terms_of_random_sizes(world *w)
{
    asi_rand rand = test_rand();
    for (int exclusive = 0; exclusive < 2; exclusive++)
    {
        pair p = world_pair(w, IPC_64K, exclusive);
        sink s = { 0 };
        as_fragment_assembler *assembler;
        CHECK_I64(as_fragment_assembler_open(on_message, &s, &assembler), AS_OK);
        uint8_t data[8192];
        int64_t published = 0;
        while (published < 3000)
        {
            const int64_t length = test_rand_below(&rand, 0 == test_rand_below(&rand, 8) ? 8193 : 200);
            fill_payload(data, published, length);
            const int64_t position = as_publication_offer(p.publication, data, length);
            CHECK(position > 0 || AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position);
            published += position > 0;
            if (position < 0 || 0 == test_rand_below(&rand, 4))
            {
                const int64_t limit = 1 + test_rand_below(&rand, 20);
                CHECK(as_subscription_poll(p.subscription, as_fragment_assembler_on_fragment, assembler, limit) >= 0);
                world_turn(w);
            }
        }
        AWAIT(w, as_subscription_poll(p.subscription, as_fragment_assembler_on_fragment, assembler, 10) >= 0 && s.count == published);
        CHECK(as_publication_position(p.publication) > 10 * 65536);
        as_fragment_assembler_close(assembler);
        world_close_pair(&p);
    }
}

static void last_position(world *w)
{
    for (int exclusive = 0; exclusive < 2; exclusive++)
    {
        /* Term count 2^31 - 1: the last term there is, 64 bytes before its end. */
        pair p = world_pair(w, "aeron:ipc?term-length=64k|init-term-id=7|term-id=-2147483642|term-offset=65472", exclusive);
        CHECK_I64(p.constants.max_possible_position, 65536LL << 31);
        sink s = { 0 };
        uint8_t data[64];
        fill_payload(data, 0, sizeof(data));
        CHECK_I64(as_publication_position(p.publication), p.constants.max_possible_position - 64);
        CHECK_I64(offer(w, p.publication, data, 0), p.constants.max_possible_position - 32);
        CHECK_I64(offer(w, p.publication, data, sizeof(data)), AS_MAX_POSITION_EXCEEDED);
        CHECK_I64(offer(w, p.publication, data, 0), AS_MAX_POSITION_EXCEEDED);
        poll_until(w, p.subscription, &s, 1);
        CHECK_I64(s.last_position, p.constants.max_possible_position - 32);
        const uint8_t bytes[1] = { 0 };
        const int32_t offsets[] = { 0, 1 };
        const as_messages messages = { .count = 1, .data = bytes, .offsets32 = offsets };
        as_offer_outcome outcome;
        CHECK_I64(as_publication_offer_messages(p.publication, &messages, 0, &outcome), AS_E_CLOSED);
        CHECK_I64(outcome.status, AS_MAX_POSITION_EXCEEDED);
        world_close_pair(&p);
    }
}

typedef struct script
{
    const as_action *actions;
    int64_t calls;
    int64_t positions[16]; /* image position as each call saw it */
    as_image *image;
} script;

static as_action on_scripted(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    script *s = context;
    (void)data;
    (void)length;
    (void)header;
    s->positions[s->calls] = as_image_position(s->image);
    return s->actions[s->calls++];
}

static void controlled_actions(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    const uint8_t data[32] = { 0 };
    for (int i = 0; i < 5; i++)
    {
        CHECK(offer(w, p.publication, data, sizeof(data)) > 0); /* 64 bytes each */
    }
    static const as_action ACTIONS[] = { AS_ACTION_CONTINUE, AS_ACTION_COMMIT, AS_ACTION_CONTINUE, AS_ACTION_ABORT,
        AS_ACTION_BREAK, AS_ACTION_CONTINUE };
    script s = { .actions = ACTIONS, .image = p.image };
    CHECK_I64(as_image_controlled_poll(p.image, on_scripted, &s, 10), 3);
    CHECK_I64(s.calls, 4);
    CHECK_I64(s.positions[1], 0);
    CHECK_I64(s.positions[2], 128); /* committed on the way */
    CHECK_I64(as_image_position(p.image), 192); /* the aborted one comes again */
    CHECK_I64(as_subscription_controlled_poll(p.subscription, on_scripted, &s, 10), 1);
    CHECK_I64(as_image_position(p.image), 256); /* break takes its own */
    CHECK_I64(as_image_bounded_controlled_poll(p.image, on_scripted, &s, 256, 10), 0);
    CHECK_I64(as_image_controlled_poll(p.image, on_scripted, &s, 10), 1);
    CHECK_I64(as_image_position(p.image), 320);
    CHECK_I64(as_image_controlled_poll(p.image, on_scripted, &s, 0), AS_E_USAGE);
    CHECK_I64(as_image_controlled_poll(p.image, NULL, &s, 1), AS_E_USAGE);
    world_close_pair(&p);
}

static void bounded_polls_and_set_position(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[32];
    for (int i = 0; i < 6; i++)
    {
        fill_payload(data, i, sizeof(data));
        CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    }
    sink s = { 0 };
    CHECK_I64(as_image_bounded_poll(p.image, on_message, &s, 0, 10), 0);
    CHECK_I64(as_image_bounded_poll(p.image, on_message, &s, 128, 10), 2);
    CHECK_I64(as_image_bounded_poll(p.image, on_message, &s, 129, 10), 1); /* begins below the bound: taken whole */
    CHECK_I64(as_image_position(p.image), 192);
    CHECK_I64(as_image_bounded_poll(p.image, on_message, &s, INT64_MAX, 1), 1);
    CHECK_I64(as_image_set_position(p.image, 200), AS_E_USAGE);
    CHECK_I64(as_image_set_position(p.image, 192), AS_E_USAGE);
    CHECK_I64(as_image_set_position(p.image, 65536 + 32), AS_E_USAGE);
    CHECK_I64(as_image_set_position(p.image, 257), AS_E_USAGE);
    CHECK_I64(as_image_set_position(p.image, 256 + 16), AS_E_USAGE);
    CHECK_I64(as_image_position(p.image), 256);
    CHECK_I64(as_image_set_position(p.image, 256), AS_OK);
    CHECK_I64(as_image_set_position(p.image, 320), AS_OK);
    s.next_number = 5;
    CHECK_I64(as_image_poll(p.image, on_message, &s, 10), 1);
    CHECK_I64(as_image_poll(p.image, on_message, &s, 0), AS_E_USAGE);
    CHECK_I64(as_image_poll(p.image, NULL, &s, 1), AS_E_USAGE);
    CHECK_I64(as_image_set_position(p.image, 65536), AS_OK); /* where its term ends */
    CHECK_I64(as_image_position(p.image), 65536);
    world_close_pair(&p);
}

typedef struct blocks
{
    int64_t count;
    int64_t lengths[64];
    uint16_t types[64];
    uint8_t bytes[65536];
    int64_t total;
} blocks;

static void on_block(void *context, const uint8_t *frames, int64_t length, int32_t session_id, int32_t term_id)
{
    blocks *b = context;
    const asi_frame_header *first = (const asi_frame_header *)(const void *)frames;
    CHECK_I64(first->session_id, session_id);
    CHECK_I64(first->term_id, term_id);
    b->lengths[b->count] = length;
    b->types[b->count++] = first->type;
    if (b->total + length <= (int64_t)sizeof(b->bytes))
    {
        memcpy(b->bytes + b->total, frames, (size_t)length);
    }
    b->total += length;
}

static void on_length(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    int64_t *last = context;
    last[0] = header->position;
    last[1] += length;
}

/* Each takes the stream past its limit, by most of a term. */
static void padding_of_most_of_a_term(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[992] = { 0 };
    int64_t end = 0;
    int64_t last[2] = { 0 };
    for (int i = 0; i < 12; i++)
    {
        CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
        AWAIT(w, (end = as_publication_append_padding(p.publication, 65536 - 2 * 1024 - 32)) > 0);
        CHECK_I64(end % 65536, 65536 - 1024);
        AWAIT(w, as_image_poll(p.image, on_length, last, 10) >= 0 && as_image_position(p.image) == end);
        end = offer(w, p.publication, data, sizeof(data));
        CHECK_I64(end, 65536 * (i + 1));
        AWAIT(w, as_image_poll(p.image, on_length, last, 10) >= 0 && last[0] == end);
        CHECK_I64(last[1], 2 * 992 * (i + 1));
    }
    world_close_pair(&p);
}

static void block_polls_and_block_offers(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[992] = { 0 };
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    CHECK_I64(as_publication_append_padding(p.publication, 64), 2048 + 96);
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    static blocks b;
    b = (blocks){ 0 };
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 1023), 0); /* no whole frame fits */
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 2047), 1024);
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 100000), 1024); /* stops before the padding */
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 32), 96);       /* padding alone, whatever the limit */
    CHECK_I64(as_subscription_block_poll(p.subscription, on_block, &b, 100000), 1024);
    CHECK_I64(as_subscription_block_poll(p.subscription, on_block, &b, 100000), 0);
    CHECK_I64(b.types[2], ASI_FRAME_PAD);
    CHECK_I64(as_image_position(p.image), 3072 + 96);

    /* The first two frames again as a block: refused until they say the place they go to. */
    AWAIT(w, as_publication_available_window(p.publication) > 4096);
    CHECK_I64(as_publication_offer_block(p.publication, b.bytes, 2048), AS_PUBLICATION_ERROR);
    for (int i = 0; i < 2; i++)
    {
        ((asi_frame_header *)(void *)(b.bytes + 1024 * i))->term_offset = 3072 + 96 + 1024 * i;
    }
    CHECK_I64(as_publication_offer_block(p.publication, b.bytes, 2040), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_offer_block(p.publication, b.bytes, 2048), 3072 + 96 + 2048);
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 100000), 2048);

    /* And again in two steps: seen with the second and not before, in a term's rest and no further. */
    const int64_t position = 3072 + 96 + 2048;
    uint8_t *room;
    AWAIT(w, as_publication_available_window(p.publication) > 4096);
    CHECK_I64(as_publication_claim_block(p.publication, 16, &room), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_claim_block(p.publication, 65536, &room), 65536 - position);
    CHECK_I64(as_publication_claim_block(p.publication, 4096, &room), 4096);
    memcpy(room + 8, b.bytes + 8, 2040);
    CHECK_I64(as_publication_commit_block(p.publication, b.bytes, 2048), AS_PUBLICATION_ERROR);
    for (int i = 0; i < 2; i++)
    {
        ((asi_frame_header *)(void *)(b.bytes + 1024 * i))->term_offset = (int32_t)position + 1024 * i;
    }
    memcpy(room + 8, b.bytes + 8, 2040);
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 100000), 0);
    CHECK_I64(as_publication_position(p.publication), position);
    CHECK_I64(as_publication_commit_block(p.publication, b.bytes, 2040), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_commit_block(p.publication, b.bytes, 2048), position + 2048);
    CHECK_I64(as_image_block_poll(p.image, on_block, &b, 100000), 2048);
    CHECK_I64(as_publication_append_padding(p.publication, 65536 - 31), AS_PUBLICATION_ERROR);
    world_close_pair(&p);
    pair shared = world_pair(w, IPC_64K, false);
    CHECK_I64(as_publication_append_padding(shared.publication, 64), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_offer_block(shared.publication, b.bytes, 2048), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_claim_block(shared.publication, 2048, &room), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_commit_block(shared.publication, b.bytes, 2048), AS_PUBLICATION_ERROR);
    world_close_pair(&shared);
}

static void late_joiner_begins_at_its_join_position(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    sink first = { 0 };
    uint8_t data[100];
    for (int i = 0; i < 10; i++)
    {
        fill_payload(data, i, sizeof(data));
        CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    }
    poll_until(w, p.subscription, &first, 10);
    for (int i = 0; i < 20; i++)
    {
        world_turn(w); /* the driver's consumer position follows the subscriber */
    }
    as_subscription *late = world_subscription(w, "aeron:ipc");
    AWAIT(w, 1 == as_subscription_image_count(late));
    as_image *image = as_subscription_image_at(late, 0);
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    CHECK_I64(constants.join_position, as_publication_position(p.publication));
    CHECK_TEXT(constants.source_identity, "aeron:ipc");
    CHECK_I64(constants.session_id, p.constants.session_id);
    CHECK_I64(constants.correlation_id, p.constants.original_registration_id);
    CHECK_I64(constants.term_length, 65536);
    CHECK(NULL == as_subscription_image_at(late, 1) && NULL == as_subscription_image_at(late, -1));
    CHECK(NULL == as_subscription_image_by_session(late, p.constants.session_id + 1));
    fill_payload(data, 10, sizeof(data));
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    sink second = { .next_number = 10 };
    poll_until(w, late, &second, 1);
    poll_until(w, p.subscription, &first, 11);
    as_image_release(image);
    as_subscription_close(late);
    world_close_pair(&p);
}

/* A subscription that closes takes no other with it, whichever of them it is. */
static void others_stay_when_one_closes(void)
{
    for (int closed = 0; closed < 3; closed++)
    {
        world w;
        as_subscription *subscriptions[3];
        world_open(&w, false);
        for (int i = 0; i < 3; i++)
        {
            subscriptions[i] = world_subscription(&w, "aeron:ipc");
        }
        as_subscription_close(subscriptions[closed]);
        as_publication *publication = world_publication(&w, IPC_64K, true);
        for (int i = 0; i < 3; i++)
        {
            if (i != closed)
            {
                AWAIT(&w, 1 == as_subscription_image_count(subscriptions[i]));
                as_subscription_close(subscriptions[i]);
            }
        }
        as_publication_close(publication);
        world_close(&w);
    }
}

static void image_goes_with_its_publication(void)
{
    world w;
    world_open(&w, false);
    pair p = world_pair(&w, IPC_64K, true);
    sink s = { 0 };
    uint8_t data[100];
    fill_payload(data, 0, sizeof(data));
    const int64_t position = offer(&w, p.publication, data, sizeof(data));
    as_publication_close(p.publication);
    CHECK_I64(w.unavailable_images, 0);
    CHECK_I64(as_image_end_of_stream_position(p.image) >= position, 1);
    poll_until(&w, p.subscription, &s, 1); /* earlier messages are still read */
    AWAIT(&w, 1 == w.unavailable_images);
    CHECK(as_image_is_closed(p.image) && as_image_is_end_of_stream(p.image));
    CHECK(!as_image_is_publication_revoked(p.image));
    CHECK_I64(as_image_position(p.image), position);
    CHECK_I64(as_image_end_of_stream_position(p.image), position);
    CHECK_I64(as_image_active_transport_count(p.image), 0);
    CHECK_I64(as_subscription_image_count(p.subscription), 0);
    CHECK_I64(as_image_poll(p.image, on_message, &s, 10), 0);
    CHECK_I64(as_image_set_position(p.image, position), AS_E_CLOSED);
    CHECK_I64(as_image_reject(p.image, "late"), AS_E_CLOSED);
    as_subscription_close(p.subscription);
    as_image *kept = p.image;
    world_close(&w);
    CHECK_I64(as_image_position(kept), position); /* a retained image outlives even its client */
    as_image_release(kept);
}

static void revoked_publication(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    const uint8_t data[100] = { 0 };
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    as_publication_revoke(p.publication);
    AWAIT(w, 1 == w->unavailable_images);
    CHECK(as_image_is_publication_revoked(p.image));
    CHECK_I64(as_image_position(p.image), 0); /* unread and gone */
    as_image_release(p.image);
    as_subscription_close(p.subscription);
}

/* The assembler holds neither the log of an image that closed inside a message, nor looks at an image that is freed. */
static void an_image_that_closes_inside_a_message(void)
{
    world w;
    world_open(&w, false);
    pair p = world_pair(&w, IPC_64K, true);
    sink s = { 0 };
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_message, &s, &assembler), AS_OK);
    uint8_t data[5000];
    fill_payload(data, 0, sizeof(data));
    CHECK(offer(&w, p.publication, data, sizeof(data)) > 0);
    AWAIT(&w, 1 == as_subscription_poll(p.subscription, as_fragment_assembler_on_fragment, assembler, 1));
    as_publication_revoke(p.publication);
    as_image_release(p.image);
    AWAIT(&w, 1 == w.unavailable_images);
    CHECK_I64(w.client->retired_images->reference_count, 1);
    as_publication *next = world_publication(&w, IPC_64K, true);
    CHECK(offer(&w, next, data, sizeof(data)) > 0);
    AWAIT(&w, as_subscription_poll(p.subscription, as_fragment_assembler_on_fragment, assembler, 3) >= 0 && s.count > 0);
    CHECK_I64(offer(&w, next, data, sizeof(data)) > 0, 1);
    AWAIT(&w, 1 == as_subscription_poll(p.subscription, as_fragment_assembler_on_fragment, assembler, 1));
    as_subscription_close(p.subscription);
    world_close(&w);
    as_fragment_assembler_close(assembler); /* the image outlives its client here */
}

static void rejected_image(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    char reason[1100];
    memset(reason, 'r', sizeof(reason));
    reason[1024] = '\0';
    CHECK_I64(as_image_reject(p.image, reason), AS_E_USAGE);
    CHECK_I64(as_image_reject(p.image, "no"), AS_OK);
    AWAIT(w, as_image_is_closed(p.image) && 1 == w->publication_errors);
    CHECK_I64(w->publication_error_code, 13);
    world_close_pair(&p);
}

static void sharing_and_sessions(world *w)
{
    as_subscription *subscription = world_subscription(w, IPC_64K);
    as_publication *a = world_publication(w, IPC_64K, false);
    as_publication *b = world_publication(w, IPC_64K, false);
    as_publication *c = world_publication(w, IPC_64K, true);
    as_publication_constants of_a;
    as_publication_constants of_b;
    as_publication_constants of_c;
    as_publication_get_constants(a, &of_a);
    as_publication_get_constants(b, &of_b);
    as_publication_get_constants(c, &of_c);
    CHECK_I64(of_a.session_id, of_b.session_id);
    CHECK_I64(of_b.original_registration_id, of_a.registration_id);
    CHECK(of_b.registration_id != of_a.registration_id && of_c.session_id != of_a.session_id);
    CHECK(!of_a.is_exclusive && of_c.is_exclusive);
    CHECK_TEXT(of_a.channel, IPC_64K);
    CHECK_I64(of_a.channel_status_counter_id, -1);
    CHECK_I64(as_publication_channel_status(a), 1);
    CHECK_I64(as_subscription_channel_status(subscription), 1);
    AWAIT(w, 2 == as_subscription_image_count(subscription));
    AWAIT(w, as_publication_position_limit(a) > 0 && as_publication_position_limit(c) > 0);
    uint8_t data[10];
    fill_payload(data, 0, sizeof(data));
    CHECK(as_publication_offer(a, data, sizeof(data)) > 0);
    fill_payload(data, 1, sizeof(data));
    CHECK(as_publication_offer(b, data, sizeof(data)) > 0);
    CHECK_I64(as_publication_position(a), 128);
    as_image *shared = as_subscription_image_by_session(subscription, of_a.session_id);
    sink s = { 0 };
    CHECK_I64(as_image_poll(shared, on_message, &s, 10), 2);
    as_image_release(shared);

    /* Round robin: with a limit of one, each of two images with data gets its turn. */
    fill_payload(data, 2, sizeof(data));
    for (int i = 0; i < 4; i++)
    {
        CHECK(as_publication_offer(a, data, sizeof(data)) > 0);
        CHECK(as_publication_offer(c, data, sizeof(data)) > 0);
    }
    for (int i = 0; i < 8; i++)
    {
        s.next_number = 2;
        CHECK_I64(as_subscription_poll(subscription, on_message, &s, 1), 1);
    }
    as_image *of_exclusive = as_subscription_image_by_session(subscription, of_c.session_id);
    CHECK_I64(as_image_position(of_exclusive), 4 * 64);
    as_image_release(of_exclusive);
    int32_t session_id;
    CHECK_I64(as_client_next_session_id(w->client, STREAM, &session_id), AS_OK);
    CHECK(session_id != of_a.session_id && session_id != of_c.session_id);
    as_publication_close(a);
    CHECK(as_publication_offer(b, data, sizeof(data)) > 0); /* the other handle keeps the stream */
}

/* A publisher that writes rubbish must not take its subscribers with it. */
static void broken_frame(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[10];
    fill_payload(data, 0, sizeof(data));
    CHECK(offer(w, p.publication, data, sizeof(data)) > 0);
    as_buffer_claim claim;
    CHECK(as_publication_try_claim(p.publication, 10, &claim) > 0);
    static const int32_t LENGTHS[] = { 31, 65536, INT32_MAX };
    sink s = { 0 };
    static blocks b;
    uint8_t value[64];
    int32_t offsets[3];
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        asi_put_i32(claim.frame, LENGTHS[i]);
        CHECK_I64(as_subscription_poll(p.subscription, on_message, &s, 10), 0 == i ? 1 : AS_E_DATA);
        CHECK_I64(as_image_poll(p.image, on_message, &s, 10), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), "position 64"));
        CHECK_I64(as_image_block_poll(p.image, on_block, &b, 1000), AS_E_DATA);
        as_columns columns = { .row_capacity = 2, .byte_capacity = sizeof(value), .value = value, .value_offset = offsets };
        CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_E_DATA);
        CHECK_I64(as_subscription_poll_columns(p.subscription, &columns, 0), AS_E_DATA);
        CHECK_I64(as_image_position(p.image), 64);
    }
    world_close_pair(&p);
}

int main(void)
{
    RUN_IN_WORLD(sizes_of_both_kinds);
    RUN_IN_WORLD(vectors_and_reserved_values);
    RUN_IN_WORLD(claims);
    RUN_IN_WORLD(back_pressure_and_connection);
    RUN_IN_WORLD(many_terms_of_random_sizes);
    RUN_IN_WORLD(last_position);
    RUN_IN_WORLD(controlled_actions);
    RUN_IN_WORLD(bounded_polls_and_set_position);
    RUN_IN_WORLD(padding_of_most_of_a_term);
    RUN_IN_WORLD(block_polls_and_block_offers);
    RUN_IN_WORLD(late_joiner_begins_at_its_join_position);
    RUN(others_stay_when_one_closes);
    RUN(image_goes_with_its_publication);
    RUN_IN_WORLD(revoked_publication);
    RUN(an_image_that_closes_inside_a_message);
    RUN_IN_WORLD(rejected_image);
    RUN_IN_WORLD(sharing_and_sessions);
    RUN_IN_WORLD(broken_frame);
    return 0;
}
