/* Goal: while a poll of an image hands messages out, nothing else reads the image or moves its position. Method: each kind of poll,
 * and in its handler each call that does. Spec: 02 §10. */
#include "world.h"

/* Handlers of polls that are refused. */
static void on_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)length;
    (void)header;
    ++*(int64_t *)context;
}

static as_action on_controlled(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    on_fragment(context, data, length, header);
    return AS_ACTION_CONTINUE;
}

static void on_block(void *context, const uint8_t *frames, int64_t length, int32_t session_id, int32_t term_id)
{
    (void)session_id;
    (void)term_id;
    on_fragment(context, frames, length, NULL);
}

/* Whatever reads the image, or moves its position, while a poll of it hands messages out. */
static void use_polled(const pair *p)
{
    int64_t calls = 0;
    int64_t position;
    as_columns columns = { .row_capacity = 1, .position = &position };
    const int64_t results[] = {
        as_image_poll(p->image, on_fragment, &calls, 10),
        as_image_bounded_poll(p->image, on_fragment, &calls, INT64_MAX, 10),
        as_image_controlled_poll(p->image, on_controlled, &calls, 10),
        as_image_bounded_controlled_poll(p->image, on_controlled, &calls, INT64_MAX, 10),
        as_image_block_poll(p->image, on_block, &calls, 4096),
        as_image_poll_columns(p->image, &columns, 0),
        as_image_set_position(p->image, as_image_position(p->image) + 64),
        as_subscription_poll(p->subscription, on_fragment, &calls, 10),
        as_subscription_controlled_poll(p->subscription, on_controlled, &calls, 10),
        as_subscription_block_poll(p->subscription, on_block, &calls, 4096),
        as_subscription_poll_columns(p->subscription, &columns, 0),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
    {
        CHECK_I64(results[i], AS_E_USAGE);
    }
    CHECK(NULL != strstr(as_error_text(), "polled by another thread or from its own handler"));
    CHECK_I64(calls + columns.row_count, 0);
}

static void poll_within(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)length;
    (void)header;
    use_polled(context);
}

static as_action poll_within_controlled(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    poll_within(context, data, length, header);
    return AS_ACTION_CONTINUE;
}

static void poll_within_block(void *context, const uint8_t *frames, int64_t length, int32_t session_id, int32_t term_id)
{
    (void)session_id;
    (void)term_id;
    poll_within(context, frames, length, NULL);
}

static void poll_from_its_own_handler_is_refused(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    const uint8_t data[1] = { 0 };
    for (int i = 1; i <= 12; i++)
    {
        CHECK(as_publication_offer(p.publication, data, 1) > 0);
        const int64_t taken = 0 == i % 6 ? as_image_poll(p.image, poll_within, &p, 10) :
            1 == i % 6 ? as_image_controlled_poll(p.image, poll_within_controlled, &p, 10) :
            2 == i % 6 ? as_image_block_poll(p.image, poll_within_block, &p, 4096) :
            3 == i % 6 ? as_subscription_poll(p.subscription, poll_within, &p, 10) :
            4 == i % 6 ? as_subscription_controlled_poll(p.subscription, poll_within_controlled, &p, 10) :
            as_subscription_block_poll(p.subscription, poll_within_block, &p, 4096);
        CHECK_I64(taken, 2 == i % 3 ? 64 : 1);
        CHECK_I64(as_image_position(p.image), 64 * i);
    }
    world_close_pair(&p);
}

int main(void)
{
    RUN_IN_WORLD(poll_from_its_own_handler_is_refused);
    return 0;
}
