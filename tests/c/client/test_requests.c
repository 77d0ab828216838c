/* Goal: a client finds its driver, or says why not, and sends it the commands that the calls mean; late, refusing or missing
 * answers become errors and leak nothing. Method: a scripted driver and a clock that the test owns (scripted.h). Spec: 03
 * §15.1-15.2, §15.5. */
#include "scripted.h"

/* -- connecting --------------------------------------------------------------------------------------------------------- */

static void refused(scripted *s, as_result expected, const char *text)
{
    CHECK_I64(scripted_connect(s), expected);
    if (NULL == strstr(as_error_text(), text) || NULL == strstr(as_error_text(), s->dir))
    {
        fprintf(stderr, "'%s' does not name '%s' and the directory\n", as_error_text(), text);
        exit(1);
    }
    CHECK(NULL == s->client);
}

static void no_driver(void)
{
    scripted s;
    scripted_create(&s);
    refused(&s, AS_E_TIMEOUT, "no live driver"); /* version not stored yet */
    CHECK_I64(s.now_ns, 2000000000);
    asi_cnc_publish(&s.cnc);
    s.is_heart_stopped = true;
    asi_ring_mpsc_set_consumer_heartbeat(&s.ring, 0);
    refused(&s, AS_E_TIMEOUT, "no heartbeat");
    asi_ring_mpsc_set_consumer_heartbeat(&s.ring, -1);
    refused(&s, AS_E_TIMEOUT, "shut down");
    asi_ring_mpsc_set_consumer_heartbeat(&s.ring, scripted_epoch_ms(&s) - 2001);
    refused(&s, AS_E_TIMEOUT, "ms old");
    *(int32_t *)(void *)s.cnc.map.base = 0x10000; /* 1.0.0 */
    refused(&s, AS_E_DATA, "version");
    char path[SCRATCH_CAPACITY + 16];
    snprintf(path, sizeof(path), "%s/cnc.dat", s.dir);
    CHECK(0 == unlink(path));
    refused(&s, AS_E_TIMEOUT, "cnc.dat");
    scripted_close(&s);
}

static void impossible_options(void)
{
    scripted s;
    scripted_create(&s);
    scripted_publish(&s);
    const asi_clock clock = { .nano_time = scripted_nano_time, .epoch_ms = scripted_epoch_ms, .context = &s };
    char name[ASI_CLIENT_NAME_MAX_LENGTH + 2];
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    as_client *client;
    for (int i = 0; i < 4; i++)
    {
        as_client_options options;
        scripted_options(&s, &options);
        options.client_name = 0 == i ? name : NULL;
        options.use_invoker = 1 != i;
        options.driver_timeout_ns = 2 == i ? 0 : options.driver_timeout_ns;
        options.keepalive_interval_ns = 3 == i ? LIVENESS_NS : options.keepalive_interval_ns;
        CHECK_I64(asi_client_open_with_clock(&options, &clock, &client), AS_E_USAGE);
    }
    scripted_close(&s);
}

static void a_driver_that_comes_later_is_found(void)
{
    scripted s;
    scripted_create(&s);
    asi_cnc_publish(&s.cnc); /* the heartbeat follows with the first turn */
    CHECK_I64(scripted_connect(&s), AS_OK);
    CHECK_I64(as_client_id(s.client), 1);
    CHECK_I64(as_client_next_correlation_id(s.client), 2);
    CHECK_TEXT(as_client_aeron_dir(s.client), s.dir);
    int32_t session_id;
    CHECK_I64(as_client_next_session_id(s.client, STREAM, &session_id), AS_OK); /* no protocol counter: invented */
    int64_t correlation_id;
    CHECK_I64(as_client_async_next_session_id(s.client, STREAM, &correlation_id), AS_OK);
    CHECK_I64(as_client_poll_session_id(s.client, correlation_id, &session_id), AS_OK);
    CHECK_I64(s.counts[ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID], 0);
    as_client_close(s.client);
    s.client = NULL;
    scripted_turn(&s);
    CHECK_I64(s.counts[ASI_CMD_CLIENT_CLOSE], 1);
    CHECK_I64(s.closes, 1);
    CHECK_I64(s.errors, 0);
    scripted_close(&s);
}

/* -- requests ----------------------------------------------------------------------------------------------------------- */

static const int32_t ADDS[] = { ASI_CMD_ADD_PUBLICATION, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, ASI_CMD_ADD_SUBSCRIPTION,
    ASI_CMD_ADD_COUNTER };
static const int32_t REMOVES[] = { ASI_CMD_REMOVE_PUBLICATION, ASI_CMD_REMOVE_PUBLICATION, ASI_CMD_REMOVE_SUBSCRIPTION,
    ASI_CMD_REMOVE_COUNTER };

static void late_answers_are_undone(scripted *s)
{
    scripted_resources r;
    for (int which = 0; which < 4; which++)
    {
        s->mode = SCRIPT_SILENT;
        const int64_t begin_ns = s->now_ns;
        CHECK_I64(scripted_add(s, &r, which), AS_E_TIMEOUT);
        CHECK(s->now_ns - begin_ns >= 1000000000);
        const int64_t id = s->last_correlation_id;
        const int64_t removed = s->counts[REMOVES[which]];
        s->last_correlation_id = id;
        answer(s, ADDS[which]);
        scripted_run(s, 3);
        CHECK_I64(s->counts[REMOVES[which]], removed + 1);
        CHECK_I64(s->last_registration_id, id);
        CHECK(NULL == s->client->requests);
        /* And a late refusal leaves nothing to undo. */
        CHECK_I64(scripted_add(s, &r, which), AS_E_TIMEOUT);
        send_error(s, s->last_correlation_id, 1, "late");
        scripted_run(s, 3);
        CHECK_I64(s->counts[REMOVES[which]], removed + 1);
        CHECK(NULL == s->client->requests);
    }
    CHECK_I64(s->errors, 0);
}

static void asynchronous_requests_time_out_and_are_undone(scripted *s)
{
    s->mode = SCRIPT_SILENT;
    int64_t id;
    as_publication *publication;
    CHECK_I64(as_client_async_add_publication(s->client, CHANNEL, STREAM, &id), AS_OK);
    CHECK_I64(as_client_poll_publication(s->client, id, &publication), AS_AGAIN);
    scripted_run(s, 1002);
    /* The answer comes between the deadline and the poll: too late all the same. */
    s->last_correlation_id = id;
    answer(s, ASI_CMD_ADD_PUBLICATION);
    CHECK_I64(as_client_poll_publication(s->client, id, &publication), AS_E_TIMEOUT);
    CHECK_I64(as_client_poll_publication(s->client, id, &publication), AS_E_USAGE);
    scripted_run(s, 3);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_PUBLICATION], 1);
    CHECK(NULL == s->client->requests && NULL == s->client->publications);
}

static int64_t scripted_add_later(scripted *s, int which)
{
    int64_t id = AS_NULL_VALUE;
    switch (which)
    {
        case 0: CHECK_I64(as_client_async_add_publication(s->client, CHANNEL, STREAM, &id), AS_OK); break;
        case 1: CHECK_I64(as_client_async_add_exclusive_publication(s->client, CHANNEL, STREAM, &id), AS_OK); break;
        case 2: CHECK_I64(as_client_async_add_subscription(s->client, CHANNEL, STREAM, NULL, NULL, NULL, &id), AS_OK); break;
        default: CHECK_I64(as_client_async_add_counter(s->client, 1000, NULL, 0, "c", &id), AS_OK); break;
    }
    scripted_turn(s);
    return id;
}

/* A publication that nobody closes keeps a shared one alive in the driver. */
static void what_was_asked_for_and_forgotten_is_removed(scripted *s)
{
    for (int which = 0; which < 4; which++)
    {
        const int64_t removed = s->counts[REMOVES[which]];
        s->mode = SCRIPT_SILENT;
        const int64_t early = scripted_add_later(s, which);
        as_client_forget(s->client, early);
        as_client_forget(s->client, early); /* no effect */
        CHECK_I64(s->counts[REMOVES[which]], removed);
        s->last_correlation_id = early;
        answer(s, ADDS[which]);
        scripted_run(s, 2);
        CHECK_I64(s->counts[REMOVES[which]], removed + 1);
        CHECK_I64(s->last_registration_id, early);

        s->mode = SCRIPT_ANSWER;
        const int64_t late = scripted_add_later(s, which);
        scripted_run(s, 1);
        as_client_forget(s->client, late);
        scripted_run(s, 1);
        CHECK_I64(s->counts[REMOVES[which]], removed + 2);
        CHECK_I64(s->last_registration_id, late);

        s->mode = SCRIPT_REFUSE;
        const int64_t refused_id = scripted_add_later(s, which);
        scripted_run(s, 1);
        as_client_forget(s->client, refused_id);
        s->mode = SCRIPT_ANSWER;
        scripted_run(s, 1);
        CHECK_I64(s->counts[REMOVES[which]], removed + 2);
        CHECK(NULL == s->client->requests);
    }
    CHECK(NULL == s->client->publications && NULL == s->client->subscriptions && NULL == s->client->owned_counters);
    CHECK_I64(s->errors, 0);
}

static void refusals_carry_code_and_text(scripted *s)
{
    s->mode = SCRIPT_REFUSE;
    scripted_resources r;
    for (int which = 0; which < 4; which++)
    {
        CHECK_I64(scripted_add(s, &r, which), AS_E_PEER);
        CHECK_I64(as_error_code(), ASI_ERR_STORAGE_SPACE);
        CHECK(NULL != strstr(as_error_text(), "no room"));
    }
    CHECK_I64(as_client_add_publication(s->client, NULL, STREAM, &r.publication), AS_E_USAGE);
    CHECK_I64(as_client_add_subscription(s->client, "", STREAM, &r.subscription), AS_E_USAGE);
    char channel[AS_CHANNEL_MAX_LENGTH + 2];
    memset(channel, 'c', sizeof(channel));
    channel[sizeof(channel) - 1] = '\0';
    CHECK_I64(as_client_add_publication(s->client, channel, STREAM, &r.publication), AS_E_USAGE);
}

/* Spec: 03 §6.1, §6.8 - who closes a channel and adds it again at once may meet its old socket. */
static void a_channel_that_closes_is_asked_for_again_until_the_time_is_over(scripted *s)
{
    scripted_resources r;
    for (int which = 0; which < 3; which++)
    {
        s->still_closing = 3;
        const int64_t asked = s->counts[ADDS[which]];
        CHECK_I64(scripted_add(s, &r, which), AS_OK);
        CHECK_I64(s->counts[ADDS[which]], asked + 4);

        s->still_closing = INT_MAX;
        const int64_t start_ns = s->now_ns;
        CHECK_I64(scripted_add(s, &r, which), AS_E_PEER);
        CHECK_I64(as_error_code(), ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE);
        CHECK(s->now_ns - start_ns >= 1000000000 && s->now_ns - start_ns < 1100000000);

        s->still_closing = 1;
        const int64_t later = scripted_add_later(s, which);
        scripted_run(s, 1);
        as_publication *publication;
        as_subscription *subscription;
        CHECK_I64(2 == which ? as_client_poll_subscription(s->client, later, &subscription) :
            as_client_poll_publication(s->client, later, &publication), AS_E_PEER);
    }
    CHECK(NULL == s->client->requests);
}

static void full_command_ring(scripted *s)
{
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
    s->mode = SCRIPT_IGNORE;
    int64_t id;
    as_result result;
    int64_t sent = 0;
    while (AS_OK == (result = as_client_async_add_publication(s->client, CHANNEL, STREAM, &id)))
    {
        sent++;
    }
    CHECK_I64(result, AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "ring") && sent > 1000);
    CHECK_I64(scripted_add(s, &r, 2), AS_E_TIMEOUT);
    as_publication_close(r.publication); /* cannot be sent to the driver yet */
    s->mode = SCRIPT_SILENT;
    scripted_run(s, 5);
    CHECK_I64(s->counts[ASI_CMD_ADD_PUBLICATION], 1 + sent);
    CHECK_I64(s->counts[ASI_CMD_ADD_SUBSCRIPTION], 0);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_PUBLICATION], 1);
}

static void announcements_that_can_not_be(scripted *s)
{
    s->mode = SCRIPT_SILENT;
    char absent[SCRATCH_CAPACITY + 16];
    snprintf(absent, sizeof(absent), "%s/absent", s->dir);
    const struct { int32_t limit_counter; const char *path; as_result expected; } ROWS[] = {
        { -1, s->log_path, AS_E_DATA },
        { 1 << 20, s->log_path, AS_E_DATA },
        { LIMIT_COUNTER, absent, AS_E_STORAGE },
        { LIMIT_COUNTER, s->dir, AS_E_STORAGE },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        int64_t id;
        as_publication *publication;
        CHECK_I64(as_client_async_add_publication(s->client, CHANNEL, STREAM, &id), AS_OK);
        send_publication_ready(s, ASI_RSP_PUBLICATION_READY, id, ROWS[i].limit_counter, ROWS[i].path);
        CHECK_I64(as_client_poll_publication(s->client, id, &publication), ROWS[i].expected);
        scripted_run(s, 2);
        CHECK_I64(s->counts[ASI_CMD_REMOVE_PUBLICATION], (int64_t)i + 1); /* the driver's side is taken back */
        CHECK_I64(s->last_registration_id, id);
    }
    s->mode = SCRIPT_ANSWER;
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    as_subscription_constants constants;
    as_subscription_get_constants(r.subscription, &constants);
    send_image(s, 5000, constants.registration_id, -1, s->log_path);
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, absent);
    *asi_counter_addr(&s->counters.counters, POSITION_COUNTER) = 33;
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path);
    scripted_run(s, 1);
    CHECK_I64(s->errors, 3);
    CHECK_I64(s->images, 0);
    *asi_counter_addr(&s->counters.counters, POSITION_COUNTER) = 64;
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path);
    send_image(s, 5000, constants.registration_id, POSITION_COUNTER, s->log_path); /* announced twice, added once */
    send_image(s, 5000, 999999, POSITION_COUNTER, s->log_path);                    /* of another subscription */
    send_image_gone(s, 4999, constants.registration_id);
    send_image_gone(s, 5000, 999999);
    scripted_run(s, 1);
    CHECK_I64(s->images, 1);
    CHECK_I64(s->lost_images, 0);
    CHECK_I64(s->reentrant, AS_E_USAGE); /* the handler's call into the client */
    CHECK_I64(as_subscription_image_count(r.subscription), 1);
    CHECK(!as_client_is_closed(s->client));
}

static void commands_carry_what_they_should(scripted *s)
{
    scripted_resources r;
    CHECK_I64(scripted_add(s, &r, 0), AS_OK);
    CHECK_I64(scripted_add(s, &r, 2), AS_OK);
    const asi_counter_request protocol = { .type_id = 0, .key = (const int32_t[]){ 43 }, .key_length = 4 };
    int32_t id = 0;
    while (id < ASI_SYSTEM_CONTROL_PROTOCOL_VERSION)
    {
        CHECK_I64(asi_counters_allocate(&s->counters, &protocol, 0, &id), AS_OK);
    }
    asi_store_release_i64(asi_counter_addr(&s->counters.counters, id), ASI_CONTROL_PROTOCOL_VERSION);
    int32_t session_id;
    CHECK_I64(as_client_next_session_id(s->client, STREAM, &session_id), AS_OK);
    CHECK_I64(session_id, 4711);
    CHECK_I64(s->last_length, 20);
    CHECK_I64(asi_get_i64(s->last), as_client_id(s->client));

    CHECK_I64(as_publication_add_destination(r.publication, "aeron:udp?endpoint=localhost:1"), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_ADD_DESTINATION], 1);
    CHECK_I64(s->last_registration_id, 5000); /* the original one */
    CHECK_I64(asi_get_i32(s->last + 24), 30);
    CHECK(0 == memcmp(s->last + 28, "aeron:udp?endpoint=localhost:1", 30));
    CHECK_I64(s->last_length, 58);
    CHECK_I64(as_publication_remove_destination(r.publication, "aeron:udp?endpoint=localhost:1"), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_DESTINATION], 1);
    CHECK_I64(as_subscription_add_destination(r.subscription, "aeron:ipc"), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_ADD_RCV_DESTINATION], 1);
    CHECK_I64(as_subscription_remove_destination(r.subscription, "aeron:ipc"), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_RCV_DESTINATION], 1);
    CHECK_I64(as_subscription_add_destination(r.subscription, NULL), AS_E_USAGE);

    int64_t correlation_id;
    CHECK_I64(as_client_async_next_session_id(s->client, STREAM, &correlation_id), AS_OK);
    scripted_turn(s);
    CHECK_I64(as_client_poll_destination(s->client, correlation_id), AS_E_USAGE); /* it is no destination's */
    CHECK_I64(as_client_poll_session_id(s->client, correlation_id, &session_id), AS_OK);
    CHECK_I64(session_id, 4711);
    CHECK_I64(as_client_poll_session_id(s->client, correlation_id, &session_id), AS_E_USAGE); /* forgotten once polled */
    CHECK_I64(as_subscription_async_add_destination(r.subscription, "aeron:ipc", &correlation_id), AS_OK);
    CHECK_I64(as_client_poll_destination(s->client, correlation_id), AS_AGAIN);
    scripted_turn(s);
    CHECK_I64(as_client_poll_destination(s->client, correlation_id), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_ADD_RCV_DESTINATION], 2);
    CHECK_I64(as_subscription_async_remove_destination(r.subscription, "aeron:ipc", &correlation_id), AS_OK);
    scripted_turn(s);
    CHECK_I64(as_client_poll_destination(s->client, correlation_id), AS_OK);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_RCV_DESTINATION], 2);
    CHECK_I64(as_subscription_async_add_destination(r.subscription, NULL, &correlation_id), AS_E_USAGE);

    char endpoint[16];
    CHECK_I64(as_subscription_resolved_endpoint(r.subscription, endpoint, sizeof(endpoint)), AS_AGAIN);
    uint8_t address[8 + 13] = { 0 };
    asi_put_i32(address, -1); /* the channel status counter that the scripted driver names */
    asi_put_i32(address + 4, 13);
    memcpy(address + 8, "10.1.2.3:4711", 13);
    const asi_counter_request bound = { .type_id = ASI_COUNTER_TYPE_LOCAL_SOCKADDR, .key = address, .key_length = sizeof(address) };
    CHECK_I64(asi_counters_allocate(&s->counters, &bound, 0, &id), AS_OK);
    CHECK_I64(as_subscription_resolved_endpoint(r.subscription, endpoint, sizeof(endpoint)), AS_AGAIN); /* not active yet */
    asi_store_release_i64(asi_counter_addr(&s->counters.counters, id), 1);
    CHECK_I64(as_subscription_resolved_endpoint(r.subscription, endpoint, 13), AS_E_USAGE);
    CHECK_I64(as_subscription_resolved_endpoint(r.subscription, endpoint, sizeof(endpoint)), AS_OK);
    CHECK_TEXT(endpoint, "10.1.2.3:4711");

    const uint8_t key[6] = { 1, 2, 3, 4, 5, 6 };
    CHECK_I64(as_client_add_counter(s->client, 1000, key, 6, "abc", &r.counter), AS_OK);
    CHECK_I64(s->last_length, 24 + 8 + 4 + 3); /* key padded to 4 */
    CHECK_I64(asi_get_i32(s->last + 20), 6);
    CHECK_I64(asi_get_i32(s->last + 32), 3);
    CHECK_I64(as_counter_id(r.counter), 7);
    as_publication_revoke(r.publication);
    scripted_run(s, 1);
    CHECK_I64(s->last_length, 32);
    CHECK_I64(asi_get_i64(s->last + 24), 1);
    as_subscription_close(r.subscription);
    scripted_run(s, 1);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_SUBSCRIPTION], 1);
    CHECK_I64(s->last_length, 24);
    as_counter_close(r.counter);
    scripted_run(s, 1);
    CHECK_I64(s->counts[ASI_CMD_REMOVE_COUNTER], 1);

    CHECK_I64(as_request_driver_termination(s->dir, (const uint8_t *)"token", 5), AS_OK);
    scripted_run(s, 1);
    CHECK_I64(s->counts[ASI_CMD_TERMINATE_DRIVER], 1);
    CHECK_I64(s->last_length, 25);
    CHECK_I64(asi_get_i32(s->last + 16), 5);
    CHECK(0 == memcmp(s->last + 20, "token", 5));
    CHECK_I64(as_request_driver_termination(s->dir, NULL, 4097), AS_E_USAGE);
    CHECK_I64(as_request_driver_termination("/dev/shm/aeron-spark-test-absent", NULL, 0), AS_E_STORAGE);
}

int main(void)
{
    RUN(no_driver);
    RUN(impossible_options);
    RUN(a_driver_that_comes_later_is_found);
    RUN_SCRIPTED(late_answers_are_undone);
    RUN_SCRIPTED(asynchronous_requests_time_out_and_are_undone);
    RUN_SCRIPTED(what_was_asked_for_and_forgotten_is_removed);
    RUN_SCRIPTED(refusals_carry_code_and_text);
    RUN_SCRIPTED(a_channel_that_closes_is_asked_for_again_until_the_time_is_over);
    RUN_SCRIPTED(full_command_ring);
    RUN_SCRIPTED(announcements_that_can_not_be);
    RUN_SCRIPTED(commands_carry_what_they_should);
    return 0;
}
