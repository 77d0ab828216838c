/* Goal: whatever a driver does to a connected client (images and counters removed, garbage, death), the client reports it,
 * leaks nothing and does not crash. Method: a scripted driver and a clock that the test owns (scripted.h).
 * Spec: 03 §15.3-15.4, §15.6-15.7. */
#include "scripted.h"

#include <errno.h>
#include <sys/resource.h>

/* -- images and mappings ------------------------------------------------------------------------------------------------ */

static void count_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)length;
    (void)header;
    (*(int64_t *)context)++;
}

/* During a poll both images go, and the linger time passes. */
static void lose_images_in_poll(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    scripted *s = context;
    as_image_constants constants;
    as_image_get_constants(header->image, &constants);
    send_image_gone(s, 5000, constants.subscription_registration_id);
    send_image_gone(s, 5001, constants.subscription_registration_id);
    scripted_run(s, 5000);
    CHECK(as_image_is_closed(header->image));
    CHECK(NULL != s->client->retired_images && NULL != s->client->retired_images->next);
    CHECK_I64(length, 5);
    CHECK(0 == memcmp(data, "hello", 5));
}

/* What a poll works on stays: its list, its images, their mappings. Deterministic under the address sanitizer. */
static void poll_keeps_what_it_polls(scripted *s)
{
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path);
    send_image(s, 5001, constants.registration_id, POSITION_COUNTER + 1, s->log_path);
    scripted_run(s, 1);
    CHECK_I64(as_subscription_image_count(r.subscription), 2);
    CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    CHECK_I64(as_subscription_poll(r.subscription, lose_images_in_poll, s, 10), 1);
    CHECK_I64(s->lost_images, 2);
    CHECK(NULL != s->client->retired_images);
    scripted_run(s, 1);
    CHECK(NULL == s->client->retired_images && NULL == r.subscription->retired_lists);
}

/* Ids that grow are new without a look at the images; an id from below may be new or not. */
static void an_image_that_is_told_twice_is_one(scripted *s)
{
    static const struct { int64_t image_id; int32_t count; } ROWS[] = { { 5000, 1 }, { 5002, 2 }, { 5001, 3 }, { 5000, 3 }, { 5002, 3 } };
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        send_image(s, ROWS[i].image_id, constants.registration_id, POSITION_COUNTER, s->log_path);
        scripted_run(s, 1);
        CHECK_I64(as_subscription_image_count(r.subscription), ROWS[i].count);
    }
}

static void set_descriptors(rlim_t count)
{
    struct rlimit limit;
    CHECK(0 == getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = count;
    CHECK(0 == setrlimit(RLIMIT_NOFILE, &limit));
}

/* While there are no descriptors images wait: those that the driver takes back, and those of a subscription that is closed, do not
 * come; the others do as soon as there are some. */
static void images_wait_for_descriptors(scripted *s)
{
    scripted_resources r;
    scripted_resources closed;
    struct rlimit before;
    CHECK(0 == getrlimit(RLIMIT_NOFILE, &before));
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    CHECK_I64(scripted_add(s, &closed, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_constants of_closed;
    as_subscription_get_constants(r.subscription, &constants);
    as_subscription_get_constants(closed.subscription, &of_closed);
    set_descriptors(0);
    for (int64_t id = 5000; id < 5003; id++)
    {
        send_image(s, id, constants.registration_id, POSITION_COUNTER, s->log_path);
    }
    send_image(s, 5003, of_closed.registration_id, POSITION_COUNTER, s->log_path);
    scripted_run(s, 1);
    CHECK_I64(s->errors, 4);
    CHECK_I64(s->error_class, AS_E_STORAGE);
    CHECK_I64(s->error_code, EMFILE);
    CHECK(NULL != strstr(s->error_text, s->log_path) && NULL != strstr(s->error_text, "session-id=9 stream-id=1001"));
    scripted_run(s, 1000);
    CHECK_I64(s->errors, 4);
    CHECK_I64(as_subscription_image_count(r.subscription), 0);
    send_image_gone(s, 5001, constants.registration_id);
    scripted_run(s, 1);
    as_subscription_close(closed.subscription);
    set_descriptors(before.rlim_cur);
    scripted_run(s, 101);
    CHECK_I64(s->errors, 4);
    CHECK_I64(s->images, 2);
    CHECK_I64(s->lost_images, 0);
    CHECK(NULL == s->client->waiting_images);
    send_image_gone(s, 5000, constants.registration_id);
    scripted_run(s, 1);
    CHECK_I64(as_subscription_image_count(r.subscription), 1);
    set_descriptors(0);
    send_image(s, 5004, constants.registration_id, POSITION_COUNTER, s->log_path);
    scripted_run(s, 1);
    set_descriptors(before.rlim_cur); /* it still waits when the client is closed */
}

/* An interval ends with a try that fails, not with one of each image; what has become impossible is reported, and gone. */
static void images_wait_in_turns(scripted *s)
{
    char absent[SCRATCH_CAPACITY + 16];
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    snprintf(absent, sizeof(absent), "%s/absent", s->dir);
    for (int64_t id = 5000; id < 5003; id++)
    {
        send_image(s, id, constants.registration_id, POSITION_COUNTER + (int32_t)(id - 5000), absent);
    }
    scripted_run(s, 1);
    CHECK_I64(s->errors, 3);
    CHECK(0 == link(s->log_path, absent));
    scripted_run(s, 99);
    CHECK_I64(s->images, 0);
    CHECK(0 == unlink(absent));
    scripted_run(s, 1); /* the first one's */
    CHECK(0 == link(s->log_path, absent));
    *asi_counter_addr(&s->counters.counters, POSITION_COUNTER + 2) = 33;
    scripted_run(s, 99);
    CHECK_I64(s->images, 0);
    scripted_run(s, 1);
    CHECK_I64(s->images, 2);
    CHECK_I64(s->errors, 4);
    CHECK_I64(s->error_class, AS_E_DATA);
    CHECK(NULL == s->client->waiting_images);
}

/* A publication and a subscription, which has its image. */
static void add_with_image(scripted *s, scripted_resources *r)
{
    CHECK_I64(scripted_add(s, r, 0), AS_OK);
    CHECK_I64(scripted_add(s, r, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_get_constants(r->subscription, &constants);
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path);
    scripted_run(s, 1);
}

static void mappings_are_shared_and_linger(scripted *s)
{
    scripted_resources r;
    as_subscription_constants constants;
    add_with_image(s, &r);
    as_subscription_get_constants(r.subscription, &constants);
    const asi_cached_log *log = s->client->logs.first;
    CHECK(NULL != log && NULL == log->next);
    CHECK_I64(log->user_count, 2);
    as_image *image = as_subscription_image_at(r.subscription, 0);
    CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    int64_t fragments = 0;
    CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &fragments, 10), 1);
    send_image_gone(s, 5000, constants.registration_id);
    scripted_run(s, 1);
    CHECK_I64(s->lost_images, 1);
    scripted_run(s, 5000);
    CHECK_I64(log->user_count, 2); /* retained */
    as_image_release(image);
    scripted_run(s, 1);
    CHECK(NULL == s->client->retired_images);
    CHECK_I64(log->user_count, 1);
    as_publication_close(r.publication);
    scripted_run(s, 2990);
    CHECK(NULL != s->client->logs.first);
    scripted_run(s, 20);
    CHECK(NULL == s->client->logs.first);
    CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &fragments, 10), 0);
}

/* In the handler the driver assigns the image's counter to another subscriber. */
static void lose_counter_in_poll(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    scripted *s = context;
    (void)data;
    (void)length;
    (void)header;
    asi_counter_value *record = &s->counters.counters.values[POSITION_COUNTER];
    record->registration_id++;
    record->value = 4096;
}

/* A client that was paused may poll before it hears that the driver has given it up. What the driver made of its counters in
 * the meantime it must not touch. */
static void counters_of_others_are_left_alone(scripted *s)
{
    enum { OWN_COUNTER = 7 };
    scripted_resources r;
    asi_counter_value *position = &s->counters.counters.values[POSITION_COUNTER];
    asi_counter_value *own = &s->counters.counters.values[OWN_COUNTER];
    for (int which = 0; which < 4; which++)
    {
        CHECK_I64(scripted_add(s, &r, which), AS_OK);
    }
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path);
    scripted_run(s, 1);
    as_image *image = as_subscription_image_at(r.subscription, 0);
    CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    int64_t fragments = 0;
    CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &fragments, 1), 1);
    CHECK_I64(position->value, 64);
    CHECK_I64(as_subscription_poll(r.subscription, lose_counter_in_poll, s, 1), 1);
    CHECK_I64(position->value, 4096);
    CHECK_I64(as_image_position(image), 128);
    s->log.metadata->end_of_stream_position = 4096;
    CHECK(!as_image_is_end_of_stream(image));
    position->value = 0;
    CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &fragments, 10), 0);
    CHECK_I64(as_image_set_position(image, 64), AS_E_CLOSED);
    int32_t session_ids[4];
    as_columns columns = { .row_capacity = 4, .session_id = session_ids };
    CHECK_I64(as_image_poll_columns(image, &columns, 0), AS_OK);
    CHECK_I64(columns.row_count, 0);
    CHECK_I64(position->value, 0);

    as_counter_set(r.counter, 3);
    CHECK_I64(own->value, 3);
    own->registration_id++;
    as_counter_set(r.counter, 4);
    CHECK_I64(as_counter_add(r.counter, 1), AS_NULL_VALUE);
    CHECK_I64(as_counter_get(r.counter), AS_NULL_VALUE);
    CHECK(as_counter_is_closed(r.counter));
    CHECK_I64(own->value, 3);

    position->value = 4096;
    send_image_gone(s, 5000, constants.registration_id);
    scripted_run(s, 1);
    CHECK(as_image_is_closed(image));
    CHECK_I64(as_image_position(image), 128);
    CHECK(!as_image_is_end_of_stream(image));
    as_image_release(image);
}

static void lose_image_in_poll(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    scripted *s = context;
    as_image_constants constants;
    as_image_get_constants(header->image, &constants);
    send_image_gone(s, constants.correlation_id, constants.subscription_registration_id);
    scripted_run(s, 1);
    CHECK(as_image_is_closed(header->image));
    (void)data;
    (void)length;
}

static as_action lose_image_controlled(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    lose_image_in_poll(context, data, length, header);
    return AS_ACTION_COMMIT;
}

static as_image *polled; /* a block has no header */

static void lose_image_in_block(void *context, const uint8_t *block, int64_t length, int32_t session_id, int32_t term_id)
{
    const as_header header = { .image = polled };
    (void)session_id;
    (void)term_id;
    lose_image_in_poll(context, block, length, &header);
}

/* The driver takes the image back while its message is handled: who reads on elsewhere begins behind that message. */
static void the_position_is_behind_what_was_handed_out(void)
{
    for (int kind = 0; kind < 3; kind++)
    {
        scripted s;
        scripted_resources r;
        scripted_open(&s);
        CHECK_I64(scripted_add(&s, &r, 0), AS_OK);
        CHECK_I64(scripted_add(&s, &r, 2), AS_OK);
        as_subscription_constants constants;
        as_subscription_get_constants(r.subscription, &constants);
        send_image(&s, 5000, constants.registration_id, POSITION_COUNTER, s.log_path);
        scripted_run(&s, 1);
        polled = as_subscription_image_at(r.subscription, 0);
        for (int i = 0; i < 2; i++)
        {
            CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
        }
        const int64_t end = 2 == kind ? 128 : 64; /* a block has both messages */
        s.log.metadata->end_of_stream_position = end;
        const int64_t taken = 0 == kind ? as_image_poll(polled, lose_image_in_poll, &s, 10) :
            1 == kind ? as_image_controlled_poll(polled, lose_image_controlled, &s, 10) :
            as_image_block_poll(polled, lose_image_in_block, &s, 4096);
        CHECK_I64(taken, 2 == kind ? 128 : 1);
        CHECK_I64(as_image_position(polled), end);
        CHECK(as_image_is_end_of_stream(polled));
        CHECK_I64(*asi_counter_addr(&s.counters.counters, POSITION_COUNTER), 0); /* it is the driver's again */
        as_image_release(polled);
        scripted_close(&s);
    }
}

static as_action count_controlled(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    count_fragment(context, data, length, header);
    return AS_ACTION_CONTINUE;
}

static void count_block(void *context, const uint8_t *block, int64_t length, int32_t session_id, int32_t term_id)
{
    (void)block;
    (void)session_id;
    (void)term_id;
    *(int64_t *)context += length;
}

/* A client that was paused finds its counter as it was, and another lap in the log. */
static void frames_of_another_lap_are_not_read(scripted *s)
{
    scripted_resources r;
    add_with_image(s, &r);
    as_image *image = as_subscription_image_at(r.subscription, 0);
    for (int i = 0; i < 3; i++)
    {
        CHECK(as_publication_offer(r.publication, (const uint8_t *)"hello", 5) > 0);
    }
    int64_t count = 0;
    int32_t term_ids[4];
    asi_frame_header *frame = (asi_frame_header *)(void *)(s->log.terms[0] + 64);
    int32_t *fields[] = { &frame->term_id, &frame->term_offset };
    const int32_t laps[] = { 3, -64 }; /* a later lap's header; a byte of a later lap's message */
    CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &count, 1), 1);
    for (int i = 0; i < 2; i++)
    {
        as_columns columns = { .row_capacity = 4, .term_id = term_ids };
        count = 0;
        *fields[i] += laps[i];
        CHECK_I64(as_image_poll(image, count_fragment, &count, 10), 0);
        CHECK_I64(as_image_controlled_poll(image, count_controlled, &count, 10), 0);
        CHECK_I64(as_image_block_poll(image, count_block, &count, 4096), 0);
        CHECK_I64(as_image_poll_columns(image, &columns, 0), AS_OK);
        CHECK_I64(columns.row_count, 0);
        CHECK_I64(count, 0);
        CHECK_I64(as_image_position(image), 64);
        *fields[i] -= laps[i];
    }
    frame = (asi_frame_header *)(void *)(s->log.terms[0] + 128);
    frame->term_id += 3; /* overtaken within the poll */
    CHECK_I64(as_image_poll(image, count_fragment, &count, 10), 1);
    CHECK_I64(as_image_position(image), 128);
    as_image_release(image);
}

static void publication_error_reaches_the_handler(scripted *s)
{
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
    uint8_t message[80] = { 0 };
    const asi_rsp_publication_error error = { .registration_id = 5000, .destination_registration_id = -1, .session_id = 9,
        .stream_id = STREAM, .receiver_id = -1, .group_tag = -1, .error_code = ASI_ERR_IMAGE_REJECTED, .message_length = 3 };
    memcpy(message, &error, sizeof(error));
    memcpy(message + sizeof(error), "bad", 3);
    send_event(s, ASI_RSP_PUBLICATION_ERROR, message, sizeof(error) + 3);
    scripted_run(s, 1);
    CHECK_I64(s->publication_errors, 1);
    asi_put_i64(message, 5001);
    send_event(s, ASI_RSP_PUBLICATION_ERROR, message, sizeof(error) + 3);
    scripted_run(s, 1);
    CHECK_I64(s->publication_errors, 1);
}

/* -- rubbish ------------------------------------------------------------------------------------------------------------ */

static const int32_t EVENTS[] = { ASI_RSP_ERROR, ASI_RSP_AVAILABLE_IMAGE, ASI_RSP_PUBLICATION_READY, ASI_RSP_OPERATION_SUCCESS,
    ASI_RSP_UNAVAILABLE_IMAGE, ASI_RSP_EXCLUSIVE_PUBLICATION_READY, ASI_RSP_SUBSCRIPTION_READY, ASI_RSP_COUNTER_READY,
    ASI_RSP_UNAVAILABLE_COUNTER, ASI_RSP_CLIENT_TIMEOUT, ASI_RSP_STATIC_COUNTER, ASI_RSP_PUBLICATION_ERROR,
    ASI_RSP_NEXT_AVAILABLE_SESSION_ID };
#define EVENT_COUNT ((int64_t)(sizeof(EVENTS) / sizeof(EVENTS[0])))

static void short_events_are_reported_and_passed_over(scripted *s)
{
    const uint8_t zeros[16] = { 0 };
    for (int64_t i = 0; i < EVENT_COUNT; i++)
    {
        const int64_t before = s->errors;
        send_event(s, EVENTS[i], zeros, 7);
        scripted_run(s, 1);
        CHECK_I64(s->errors, before + 1);
        CHECK_I64(s->error_class, AS_E_DATA);
    }
    send_event(s, 0x0FFF, zeros, 7); /* of a newer driver: nothing to say */
    scripted_run(s, 1);
    CHECK_I64(s->errors, EVENT_COUNT);
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
}

static void random_events(scripted *s)
{
    asi_rand rand = test_rand();
    scripted_resources r;
    for (int which = 0; which < 4; which++)
    {
        CHECK_I64(scripted_add(s, &r, which), AS_OK);
    }
    s->mode = SCRIPT_SILENT;
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    for (int i = 0; i < 20000; i++)
    {
        /* Ids that exist and lengths near the message's own: the ways into the code. */
        uint8_t message[128];
        int64_t id = 0;
        for (size_t at = 0; at + 4 <= sizeof(message); at += 4)
        {
            const int64_t kind = test_rand_below(&rand, 4);
            asi_put_i32(message + at, 0 == kind ? (int32_t)asi_rand_u64(&rand) : (int32_t)test_rand_below(&rand, 2 == kind ? 5100 : 64));
        }
        if (0 == i % 50)
        {
            CHECK_I64(as_client_async_add_publication(s->client, CHANNEL, STREAM, &id), AS_OK);
            asi_put_i64(message, id);
        }
        if (0 == i % 3)
        {
            asi_put_i64(message + 16, constants.registration_id);
        }
        int32_t type_id = EVENTS[test_rand_below(&rand, EVENT_COUNT)];
        /* A true client timeout ends the client; not the goal here. */
        type_id = ASI_RSP_CLIENT_TIMEOUT == type_id ? ASI_RSP_ERROR : type_id;
        send_event(s, type_id, message, test_rand_below(&rand, sizeof(message) + 1));
        if (0 == i % 10)
        {
            s->has_stopped_clock = true;
            scripted_run(s, 1);
        }
    }
    CHECK(!as_client_is_closed(s->client));
}

/* -- the end ------------------------------------------------------------------------------------------------------------ */

static void overrun(scripted *s)
{
    const uint8_t zeros[1024] = { 0 };
    for (int i = 0; i < 3000; i++)
    {
        send_event(s, 0x0FFF, zeros, sizeof(zeros));
    }
}

static void end_client(scripted *s, int how)
{
    switch (how)
    {
        case 0: /* orderly shutdown of the driver */
            s->is_heart_stopped = true;
            asi_ring_mpsc_set_consumer_heartbeat(&s->ring, -1);
            break;
        case 1: /* its death */
            s->is_heart_stopped = true;
            break;
        case 2: /* a paused process */
            s->now_ns += LIVENESS_NS + 1000000;
            break;
        case 3:
        {
            const asi_rsp_client_timeout other = { .client_id = as_client_id(s->client) + 1 };
            send_event(s, ASI_RSP_CLIENT_TIMEOUT, &other, sizeof(other));
            scripted_run(s, 1);
            CHECK(!as_client_is_closed(s->client));
            const asi_rsp_client_timeout ours = { .client_id = as_client_id(s->client) };
            send_event(s, ASI_RSP_CLIENT_TIMEOUT, &ours, sizeof(ours));
            break;
        }
        case 4: /* the heartbeat counter is assigned to another client */
        {
            const int64_t client_id = as_client_id(s->client);
            const asi_counter_request heartbeat = { .type_id = ASI_COUNTER_TYPE_CLIENT_HEARTBEAT, .key = &client_id,
                .key_length = 8, .registration_id = client_id, .owner_id = client_id };
            int32_t id;
            CHECK_I64(asi_counters_allocate(&s->counters, &heartbeat, 0, &id), AS_OK);
            scripted_run(s, 1100);
            CHECK(!as_client_is_closed(s->client));
            asi_counters_free(&s->counters, id, 0);
            break;
        }
        default: /* events overtook us */
            overrun(s);
            break;
    }
}

static void fatal_conditions(void)
{
    static const struct { as_result class_of_failure; int32_t code; const char *text; } ROWS[] = {
        { AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, "has been shut down" },
        { AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, "last heartbeat" },
        { AS_E_TIMEOUT, ASI_CLIENT_SERVICE_TIMEOUT, "service interval exceeded" },
        { AS_E_TIMEOUT, ASI_CLIENT_TIMEOUT, "keep-alive" },
        { AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, "unexpected close of heartbeat" },
        { AS_E_DATA, 0, "unable to keep up" },
    };
    for (int how = 0; how < (int)(sizeof(ROWS) / sizeof(ROWS[0])); how++)
    {
        scripted s;
        scripted_open(&s);
        scripted_resources r;
        for (int which = 0; which < 4; which++)
        {
            CHECK_I64(scripted_add(&s, &r, which), AS_OK);
        }
        as_subscription_constants constants;
        as_subscription_get_constants(r.subscription, &constants);
        send_image(&s, 5000, constants.registration_id, POSITION_COUNTER, s.log_path);
        scripted_run(&s, 1);
        as_image *image = as_subscription_image_at(r.subscription, 0);
        CHECK(NULL != image);
        s.mode = SCRIPT_SILENT;
        int64_t pending;
        CHECK_I64(as_client_async_add_publication(s.client, CHANNEL, STREAM, &pending), AS_OK);
        end_client(&s, how);
        for (int i = 0; i < 4000 && !as_client_is_closed(s.client); i++)
        {
            scripted_run(&s, 1);
        }
        CHECK(as_client_is_closed(s.client));
        scripted_run(&s, 10);
        CHECK_I64(s.errors, 1);
        CHECK_I64(s.closes, 1);
        CHECK_I64(s.error_class, ROWS[how].class_of_failure);
        CHECK_I64(s.error_code, ROWS[how].code);
        CHECK(NULL != strstr(s.error_text, ROWS[how].text));
        CHECK_I64(s.lost_images, 1);
        CHECK_I64(s.counts[ASI_CMD_CLIENT_CLOSE], 1);

        const uint8_t data[1] = { 0 };
        as_buffer_claim claim;
        int64_t fragments = 0;
        CHECK_I64(as_publication_offer(r.publication, data, 1), AS_PUBLICATION_CLOSED);
        CHECK_I64(as_publication_offer(r.exclusive, data, 1), AS_PUBLICATION_CLOSED);
        CHECK_I64(as_publication_try_claim(r.exclusive, 1, &claim), AS_PUBLICATION_CLOSED);
        CHECK_I64(as_publication_position(r.publication), AS_PUBLICATION_CLOSED);
        CHECK_I64(as_publication_channel_status(r.publication), -1);
        CHECK(as_publication_is_closed(r.publication) && !as_publication_is_connected(r.publication));
        CHECK(as_subscription_is_closed(r.subscription) && !as_subscription_is_connected(r.subscription));
        CHECK_I64(as_subscription_poll(r.subscription, count_fragment, &fragments, 1), AS_E_CLOSED);
        CHECK(NULL != strstr(as_error_text(), ROWS[how].text)); /* every later call says why */
        CHECK(as_image_is_closed(image) && as_counter_is_closed(r.counter));
        as_counter_set(r.counter, 5);
        CHECK_I64(as_counter_get(r.counter), AS_NULL_VALUE);
        as_publication *publication;
        /* Of the slow ends (1, 4) the request's own time ran out before. */
        CHECK_I64(as_client_poll_publication(s.client, pending, &publication),
            1 == how || 4 == how ? AS_E_TIMEOUT : AS_E_CLOSED);
        CHECK(1 == how || 4 == how || NULL != strstr(as_error_text(), ROWS[how].text));
        CHECK_I64(scripted_add(&s, &r, 0), AS_E_CLOSED);
        CHECK(NULL != strstr(as_error_text(), ROWS[how].text));
        CHECK_I64(as_publication_add_destination(r.publication, "aeron:ipc"), AS_E_CLOSED);
        as_offer_outcome outcome;
        const int32_t offsets[] = { 0, 1 };
        const as_messages messages = { .count = 1, .data = data, .offsets32 = offsets };
        CHECK_I64(as_publication_offer_messages(r.exclusive, &messages, 1000, &outcome), AS_E_CLOSED);
        CHECK_I64(outcome.status, AS_PUBLICATION_CLOSED);
        as_publication_close(r.publication);
        as_publication_close(NULL);
        as_subscription_close(NULL);
        as_counter_close(NULL);
        as_client_close(NULL);
        as_image_release(NULL);
        as_client_close(s.client);
        s.client = NULL;
        CHECK_I64(s.errors, 1);
        CHECK_I64(s.closes, 1);
        as_image_release(image);
        scripted_close(&s);
    }
}

/* The timeout of calls may be shorter than the interval of the driver's heartbeat, which is a second. */
static void a_short_timeout_is_no_death_of_the_driver(void)
{
    scripted s;
    as_client_options options;
    scripted_create(&s);
    scripted_publish(&s);
    scripted_options(&s, &options);
    options.driver_timeout_ns = 200000000;
    s.is_heart_stopped = true;
    s.now_ns += 990000000;
    const asi_clock clock = { .nano_time = scripted_nano_time, .epoch_ms = scripted_epoch_ms, .context = &s };
    CHECK_I64(asi_client_open_with_clock(&options, &clock, &s.client), AS_OK);
    for (int i = 0; i < 5; i++)
    {
        asi_ring_mpsc_set_consumer_heartbeat(&s.ring, scripted_epoch_ms(&s));
        scripted_run(&s, 1000);
        CHECK(!as_client_is_closed(s.client));
    }
    scripted_run(&s, 1600); /* the next keepalive after 2 s without a heartbeat */
    CHECK(as_client_is_closed(s.client));
    CHECK(NULL != strstr(s.error_text, "ms old, more than the 2000 ms"));
    scripted_close(&s);
}

int main(void)
{
    RUN_SCRIPTED(poll_keeps_what_it_polls);
    RUN_SCRIPTED(an_image_that_is_told_twice_is_one);
    RUN_SCRIPTED(images_wait_for_descriptors);
    RUN_SCRIPTED(images_wait_in_turns);
    RUN_SCRIPTED(mappings_are_shared_and_linger);
    RUN_SCRIPTED(counters_of_others_are_left_alone);
    RUN(the_position_is_behind_what_was_handed_out);
    RUN_SCRIPTED(frames_of_another_lap_are_not_read);
    RUN_SCRIPTED(publication_error_reaches_the_handler);
    RUN_SCRIPTED(short_events_are_reported_and_passed_over);
    RUN_SCRIPTED(random_events);
    RUN(fatal_conditions);
    RUN(a_short_timeout_is_no_death_of_the_driver);
    return 0;
}
