/* Goal: columns of whole messages are the published messages, across fragments, terms, full columns and images, and
 * a batch is published in order up to where its outcome says. Method: our driver and a client invoked on one thread. */
#include "world.h"

#define ROWS 64
#define BYTES 20000

typedef struct buffers
{
    int64_t position[ROWS];
    int64_t next_position[ROWS];
    int64_t reserved_value[ROWS];
    int32_t session_id[ROWS];
    int32_t stream_id[ROWS];
    int32_t term_id[ROWS];
    int32_t term_offset[ROWS];
    uint8_t flags[ROWS];
    int32_t value_offset[ROWS + 1];
    uint8_t value[BYTES];
} buffers;

static as_columns columns_of(buffers *b, int64_t rows, int64_t bytes)
{
    return (as_columns){
        .row_capacity = rows,
        .byte_capacity = bytes,
        .position = b->position,
        .next_position = b->next_position,
        .reserved_value = b->reserved_value,
        .session_id = b->session_id,
        .stream_id = b->stream_id,
        .term_id = b->term_id,
        .term_offset = b->term_offset,
        .flags = b->flags,
        .value_offset = b->value_offset,
        .value = b->value,
    };
}

/* A batch of random messages, numbered from `first`. */
typedef struct batch
{
    int64_t count;
    int64_t lengths[ROWS];
    int32_t offsets32[ROWS + 1];
    int64_t offsets64[ROWS + 1];
    int64_t reserved_values[ROWS];
    uint8_t data[ROWS * 8192];
} batch;

static void fill_batch(batch *b, asi_rand *rand, int64_t first, int64_t count)
{
    b->count = count;
    b->offsets32[0] = 0;
    b->offsets64[0] = 0;
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t length = test_rand_below(rand, 0 == test_rand_below(rand, 6) ? 8193 : 300);
        fill_payload(b->data + b->offsets64[i], first + i, length);
        b->lengths[i] = length;
        b->reserved_values[i] = (first + i) * 1000;
        b->offsets64[i + 1] = b->offsets64[i] + length;
        b->offsets32[i + 1] = (int32_t)b->offsets64[i + 1];
    }
}

static void check_rows(const as_columns *columns, const pair *p, int64_t first, int64_t *position)
{
    for (int64_t i = 0; i < columns->row_count; i++)
    {
        CHECK_I64(columns->reserved_value[i], (first + i) * 1000);
        CHECK_I64(columns->session_id[i], p->constants.session_id);
        CHECK_I64(columns->stream_id[i], STREAM);
        CHECK_I64(columns->term_id[i], p->constants.initial_term_id + (int32_t)(columns->position[i] / 65536));
        CHECK_I64(columns->term_offset[i], columns->position[i] % 65536);
        CHECK_I64(columns->flags[i], 0xC0);
        CHECK(columns->position[i] >= *position);
        *position = columns->next_position[i];
        check_payload(columns->value + columns->value_offset[i], first + i, columns->value_offset[i + 1] - columns->value_offset[i]);
    }
    if (columns->row_count > 0)
    {
        CHECK_I64(columns->value_offset[0], 0);
        CHECK_I64(columns->value_offset[columns->row_count], columns->byte_count);
    }
}

static void batches_to_columns_over_many_terms(world *w)
{
    static batch out;
    static buffers in;
    asi_rand rand = test_rand();
    for (int round = 0; round < 4; round++)
    {
        const bool whole_subscription = round >= 2;
        pair p = world_pair(w, IPC_64K, 0 == round % 2);
        int64_t published = 0;
        int64_t received = 0;
        int64_t position = 0;
        while (received < 1500)
        {
            /* Random lengths may make the initial term id overflow the check above, which int32_t arithmetic wraps alike. */
            fill_batch(&out, &rand, published, 1 + test_rand_below(&rand, 20));
            const as_messages messages = {
                .count = out.count,
                .data = out.data,
                .offsets32 = 0 == round % 2 ? out.offsets32 : NULL,
                .offsets64 = 0 == round % 2 ? NULL : out.offsets64,
                .reserved_values = out.reserved_values,
            };
            as_offer_outcome outcome;
            const as_result result = as_publication_offer_messages(p.publication, &messages, 0, &outcome);
            CHECK(AS_OK == result ? out.count == outcome.accepted && 0 == outcome.status :
                AS_E_TIMEOUT == result && AS_BACK_PRESSURED == outcome.status && outcome.accepted < out.count);
            CHECK(0 == outcome.accepted ? 0 == outcome.position : as_publication_position(p.publication) >= outcome.position);
            published += outcome.accepted;
            do
            {
                as_columns columns = columns_of(&in, 1 + test_rand_below(&rand, ROWS), 8192 + test_rand_below(&rand, BYTES - 8192));
                CHECK_I64(whole_subscription ? as_subscription_poll_columns(p.subscription, &columns, 0) :
                    as_image_poll_columns(p.image, &columns, 0), AS_OK);
                check_rows(&columns, &p, received, &position);
                received += columns.row_count;
            } while (received < published);
            /* Past the last row, and past padding that ends its term. */
            const int64_t reached = as_image_position(p.image);
            CHECK(reached == position || (reached > position && 0 == reached % 65536));
            for (int i = 0; i < 3; i++)
            {
                world_turn(w);
            }
        }
        CHECK(position > 3 * 65536);
        world_close_pair(&p);
    }
}

static void what_does_not_fit(world *w)
{
    static buffers in;
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[5000];
    fill_payload(data, 0, sizeof(data));
    CHECK(as_publication_offer(p.publication, data, 10) > 0);
    CHECK(as_publication_offer(p.publication, data, 5000) > 0);
    as_columns columns = columns_of(&in, ROWS, 4999);
    CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 1);
    CHECK_I64(as_image_position(p.image), 64);
    CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "5000 bytes"));
    CHECK_I64(as_subscription_poll_columns(p.subscription, &columns, 0), AS_E_USAGE);
    /* Without values any message fits. */
    as_columns positions = { .row_capacity = 1, .position = in.position, .next_position = in.next_position };
    CHECK_I64(as_image_poll_columns(p.image, &positions, 0), AS_OK);
    CHECK_I64(positions.row_count, 1);
    CHECK_I64(in.next_position[0], as_publication_position(p.publication));

    as_columns bad = columns_of(&in, 0, 10);
    CHECK_I64(as_image_poll_columns(p.image, &bad, 0), AS_E_USAGE);
    bad = columns_of(&in, 1, (int64_t)INT32_MAX + 1);
    CHECK_I64(as_image_poll_columns(p.image, &bad, 0), AS_E_USAGE);
    bad = columns_of(&in, 1, 10);
    bad.value = NULL;
    CHECK_I64(as_subscription_poll_columns(p.subscription, &bad, 0), AS_E_USAGE);
    world_close_pair(&p);
}

static void unfinished_message_waits_and_cut_off_one_is_passed_over(world *w)
{
    static buffers in;
    pair p = world_pair(w, IPC_64K, true);
    as_buffer_claim claim;
    CHECK(as_publication_try_claim(p.publication, 40, &claim) > 0);
    claim.frame[5] = 0x80; /* BEGIN without END: the first of two fragments */
    fill_payload(claim.data, 0, 40);
    as_buffer_claim_commit(&claim);
    as_columns columns = columns_of(&in, ROWS, BYTES);
    CHECK_I64(as_image_poll_columns(p.image, &columns, 1000000), AS_OK);
    CHECK_I64(columns.row_count, 0);
    CHECK_I64(as_image_position(p.image), 0);
    CHECK(as_publication_try_claim(p.publication, 8, &claim) > 0);
    claim.frame[5] = 0x40;
    as_buffer_claim_commit(&claim);
    CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 1);
    CHECK_I64(columns.byte_count, 48);
    CHECK_I64(columns.next_position[0], 160);
    /* A middle fragment that nothing precedes, as a late joiner sees it. */
    CHECK(as_publication_try_claim(p.publication, 8, &claim) > 0);
    claim.frame[5] = 0x40;
    as_buffer_claim_commit(&claim);
    CHECK(as_publication_offer(p.publication, claim.data, 8) > 0);
    CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 1);
    CHECK_I64(columns.position[0], 224);
    world_close_pair(&p);
}

/* As a replay does that ends where a recording was truncated; whether the columns come before the end or after it. */
static void a_message_that_the_stream_ended_within_is_passed_over(void)
{
    static buffers in;
    for (int is_polled_before = 0; is_polled_before < 2; is_polled_before++)
    {
        world w;
        world_open(&w, false);
        pair p = world_pair(&w, IPC_64K, true);
        as_buffer_claim claim;
        CHECK(as_publication_offer(p.publication, (const uint8_t *)"whole", 5) > 0);
        CHECK(as_publication_try_claim(p.publication, 40, &claim) > 0);
        claim.frame[5] = 0x80; /* BEGIN without END */
        as_buffer_claim_commit(&claim);
        CHECK(as_publication_try_claim(p.publication, 40, &claim) > 0);
        claim.frame[5] = 0;
        as_buffer_claim_commit(&claim);
        as_columns columns = columns_of(&in, ROWS, BYTES);
        if (is_polled_before)
        {
            CHECK_I64(as_image_poll_columns(p.image, &columns, 0), AS_OK);
            CHECK_I64(columns.row_count, 1);
            CHECK_I64(as_image_position(p.image), 64);
        }
        as_publication_close(p.publication);
        if (!is_polled_before)
        {
            AWAIT(&w, 64 + 2 * 96 == as_image_end_of_stream_position(p.image));
            CHECK_I64(as_subscription_poll_columns(p.subscription, &columns, 0), AS_OK);
            CHECK_I64(columns.row_count, 1);
        }
        AWAIT(&w, AS_OK == as_subscription_poll_columns(p.subscription, &columns, 0) && 1 == w.unavailable_images);
        CHECK_I64(columns.row_count, 0);
        CHECK(as_image_is_end_of_stream(p.image));
        CHECK_I64(as_image_position(p.image), 64 + 2 * 96);
        as_image_release(p.image);
        as_subscription_close(p.subscription);
        world_close(&w);
    }
}

static void outcomes_of_batches(world *w)
{
    static uint8_t data[10000];
    as_publication *publication = world_publication(w, IPC_64K, true);
    as_offer_outcome outcome;
    const int32_t offsets[] = { 0, 10, 20, 9000, 9010 };
    as_messages messages = { .count = 2, .data = data, .offsets32 = offsets };
    CHECK_I64(as_publication_offer_messages(publication, &messages, 5000000, &outcome), AS_E_TIMEOUT);
    CHECK_I64(outcome.status, AS_NOT_CONNECTED);
    CHECK(NULL != strstr(as_error_text(), "no subscriber"));
    as_publication_close(publication);

    pair p = world_pair(w, IPC_64K, true);
    messages.count = 4;
    CHECK_I64(as_publication_offer_messages(p.publication, &messages, 0, &outcome), AS_E_USAGE);
    CHECK_I64(outcome.accepted, 2);
    CHECK_I64(outcome.position, 128);
    CHECK_I64(outcome.status, AS_PUBLICATION_ERROR);
    CHECK(NULL != strstr(as_error_text(), "8980 bytes"));
    CHECK_I64(as_publication_position(p.publication), 128);
    messages.count = 0;
    CHECK_I64(as_publication_offer_messages(p.publication, &messages, 0, &outcome), AS_OK);
    CHECK_I64(outcome.accepted, 0);
    const int64_t descending[] = { 10, 0 };
    const as_messages bad = { .count = 1, .data = data, .offsets64 = descending };
    CHECK_I64(as_publication_offer_messages(p.publication, &bad, 0, &outcome), AS_E_USAGE);
    const as_messages nothing = { .count = 1, .data = NULL, .offsets32 = offsets };
    CHECK_I64(as_publication_offer_messages(p.publication, &nothing, 0, &outcome), AS_E_USAGE);
    const as_messages both = { .count = 1, .data = data, .offsets64 = descending, .offsets32 = offsets };
    CHECK_I64(as_publication_offer_messages(p.publication, &both, 0, &outcome), AS_E_USAGE);
    CHECK_I64(as_publication_position(p.publication), 128);
    world_close_pair(&p);
}

/* Rows there are first, then the end. */
static void columns_of_a_closed_image(world *w)
{
    static buffers in;
    pair p = world_pair(w, IPC_64K, true);
    const uint8_t data[8] = { 0 };
    CHECK(as_publication_offer(p.publication, data, 8) > 0);
    as_publication_close(p.publication);
    as_columns columns = columns_of(&in, ROWS, BYTES);
    CHECK_I64(as_image_poll_columns(p.image, &columns, TIMEOUT_NS), AS_OK);
    CHECK_I64(columns.row_count, 1);
    CHECK_I64(as_image_poll_columns(p.image, &columns, TIMEOUT_NS), AS_E_CLOSED); /* the wait drives client and driver */
    CHECK_I64(as_subscription_poll_columns(p.subscription, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 0);
    as_image_release(p.image);
    as_subscription_close(p.subscription);
}

static void full_columns_starve_no_image(world *w)
{
    static buffers in;
    pair a = world_pair(w, IPC_64K, true);
    as_publication *other = world_publication(w, IPC_64K, true);
    AWAIT(w, 2 == as_subscription_image_count(a.subscription) && as_publication_position_limit(other) > 0);
    const uint8_t data[8] = { 0 };
    for (int i = 0; i < 4; i++)
    {
        CHECK(as_publication_offer(a.publication, data, 8) > 0);
        CHECK(as_publication_offer(other, data, 8) > 0);
    }
    int64_t of_a = 0;
    for (int i = 0; i < 4; i++)
    {
        as_columns columns = columns_of(&in, 1, BYTES);
        CHECK_I64(as_subscription_poll_columns(a.subscription, &columns, 0), AS_OK);
        CHECK_I64(columns.row_count, 1);
        of_a += columns.session_id[0] == a.constants.session_id;
    }
    CHECK_I64(of_a, 2);
    as_publication_close(other);
    world_close_pair(&a);
}

int main(void)
{
    RUN_IN_WORLD(batches_to_columns_over_many_terms);
    RUN_IN_WORLD(what_does_not_fit);
    RUN_IN_WORLD(unfinished_message_waits_and_cut_off_one_is_passed_over);
    RUN(a_message_that_the_stream_ended_within_is_passed_over);
    RUN_IN_WORLD(outcomes_of_batches);
    RUN_IN_WORLD(columns_of_a_closed_image);
    RUN_IN_WORLD(full_columns_starve_no_image);
    return 0;
}
