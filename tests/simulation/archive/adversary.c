/* See adversary.h. */
#include "adversary.h"

#include <stdio.h>
#include <string.h>

#include "clients.h"
#include "logins.h"
#include "sim_trace.h"
#include "world.h"

#define CONTROL_STREAM 10
#define OWN_STREAM 21
#define OWN_LOCAL_STREAM 31
#define OWN_PORT 8600
#define HONEST_STREAM 20
#define CONNECT_TIMEOUT_NS 30000000LL
#define GUEST_RETRY_NS 500000000LL
#define NEAR 6
#define MESSAGE_CAPACITY 2048
#define CREDENTIALS_LENGTH 1500

static uint64_t draw(sim_world *world) { return asi_rand_u64(&world->adversary.rand); }
static int64_t below(sim_world *world, int64_t bound) { return (int64_t)(draw(world) % (uint64_t)bound); }
static bool percent(sim_world *world, int64_t chance) { return below(world, 100) < chance; }

/* Where it sends from: its own address, or the honest client's. */
static const char *address_of(const world_adversary *adversary) { return adversary->shares_source ? "10.0.0.1" : "127.0.0.1"; }

/* -- life ------------------------------------------------------------------------------------------------------------------------ */

void adversary_choose(sim_world *world, int32_t share)
{
    world_adversary *adversary = &world->adversary;
    asi_rand_seed(&adversary->rand, world->seed ^ 0xadef5a11ULL);
    adversary->guest_session = AS_NULL_VALUE;
    const bool is_chosen = percent(world, share);
    const int64_t kind = below(world, 100);
    adversary->is_there = is_chosen;
    adversary->has_logins = is_chosen && kind < 80;
    adversary->is_local = 0 == kind % 4;
    adversary->is_visitor_local = !adversary->is_local && percent(world, 50);
    adversary->shares_source = !adversary->is_local && !adversary->is_visitor_local && percent(world, 30);
}

void adversary_close(sim_world *world)
{
    world_adversary *adversary = &world->adversary;
    if (NULL == adversary->client)
    {
        return;
    }
    adversary->guest_session = AS_NULL_VALUE;
    adversary->guest_connect = AS_NULL_VALUE;
    adversary->guest_retry_ns = 0;
    adversary->heard_count = 0;
    as_client_close(adversary->client); /* with what it has */
    as_fragment_assembler_close(adversary->assembler);
    adversary->client = NULL;
    adversary->assembler = NULL;
    adversary->responses = NULL;
    memset(adversary->doors, 0, sizeof(adversary->doors));
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    sim_world *world = context;
    world_adversary *adversary = &world->adversary;
    asi_codec_event event;
    if (AS_OK != asi_codec_event_decode_untrusted(data, length, &event))
    {
        return;
    }
    if (ASI_CODEC_CONTROL_RESPONSE != event.template_id && ASI_CODEC_CHALLENGE != event.template_id)
    {
        return;
    }
    adversary->heard[adversary->heard_count++ % ADVERSARY_HEARD] = event.control_session_id;
    const bool is_ok = ASI_CODEC_CONTROL_RESPONSE == event.template_id && ASI_CODEC_OK == event.code;
    if (is_ok && event.correlation_id == adversary->guest_connect)
    {
        adversary->guest_session = event.control_session_id;
    }
    else if (is_ok && event.control_session_id != adversary->guest_session)
    {
        sim_fail("logins", "session %" PRId64 " does what the adversary asks", event.control_session_id);
    }
}

static void open_door(sim_world *world, int32_t at)
{
    world_adversary *adversary = &world->adversary;
    char control[96] = "aeron:ipc?term-length=64k";
    if (!adversary->is_local)
    {
        snprintf(control, sizeof(control), "aeron:udp?endpoint=%s:%d|term-length=64k", address_of(adversary), ADVERSARY_CONTROL_PORT);
    }
    if (AS_OK != as_client_add_exclusive_publication(adversary->client, control, CONTROL_STREAM, &adversary->doors[at]))
    {
        sim_fail("setup", "adversary: %s", as_error_text());
    }
    adversary->connected_ns[at] = world->now_ns;
}

static void open_client(sim_world *world)
{
    world_adversary *adversary = &world->adversary;
    char own[96] = "aeron:ipc";
    if (!adversary->is_local)
    {
        snprintf(own, sizeof(own), "aeron:udp?endpoint=%s:%d", address_of(adversary), OWN_PORT);
    }
    as_result result = world_open_client(world, &adversary->client);
    result = AS_OK == result ? as_client_add_subscription(
        adversary->client, own, adversary->is_local ? OWN_LOCAL_STREAM : OWN_STREAM, &adversary->responses) : result;
    result = AS_OK == result ? as_fragment_assembler_open(on_message, world, &adversary->assembler) : result;
    if (AS_OK != result)
    {
        sim_fail("setup", "adversary: %s", as_error_text());
    }
    for (int32_t i = 0; i < ADVERSARY_DOORS; i++)
    {
        open_door(world, i);
    }
}

/* The archive rejects the images of sessions that it gives up. */
static void mend_doors(sim_world *world)
{
    world_adversary *adversary = &world->adversary;
    for (int32_t i = 0; i < ADVERSARY_DOORS; i++)
    {
        if (as_publication_is_connected(adversary->doors[i]))
        {
            adversary->connected_ns[i] = world->now_ns;
        }
        else if (world->now_ns - adversary->connected_ns[i] > CONNECT_TIMEOUT_NS)
        {
            as_publication_close(adversary->doors[i]);
            open_door(world, i);
            adversary->guest_session = 0 == i ? AS_NULL_VALUE : adversary->guest_session;
        }
    }
}

/* -- what it knows ------------------------------------------------------------------------------------------------------------------ */

void adversary_capture_request(sim_world *world, const asi_codec_request *request, const uint8_t *bytes, int64_t length)
{
    world_adversary *adversary = &world->adversary;
    const bool is_connect = ASI_CODEC_AUTH_CONNECT == request->template_id;
    const asi_codec_var *credentials = &request->encoded_credentials;
    const bool has_password =
        credentials->length > 0 && NULL != memchr(credentials->data, ':', (size_t)credentials->length);
    if (!adversary->is_there || length > ADVERSARY_CAPTURE_CAPACITY || (is_connect && (has_password || !adversary->has_logins || adversary->shares_source)))
    {
        return;
    }
    adversary_capture *capture = &adversary->captures[adversary->capture_count++ % ADVERSARY_CAPTURES];
    memcpy(capture->bytes, bytes, (size_t)length);
    capture->length = length;
}

/* A control session that is not the adversary's, by any guess; or one of its own that is not accepted. */
static int64_t guess_session(sim_world *world)
{
    const world_adversary *adversary = &world->adversary;
    const int64_t known = adversary->heard_count < ADVERSARY_HEARD ? adversary->heard_count : ADVERSARY_HEARD;
    const int64_t kind = below(world, 10);
    int64_t guess = (int64_t)draw(world);
    if (kind < 4)
    {
        guess = world->session.id;
    }
    else if (kind < 7)
    {
        guess = world->archive->sessions->next_id - 1 - below(world, NEAR);
    }
    else if (kind < 9 && known > 0)
    {
        guess = adversary->heard[below(world, known)];
    }
    return guess == adversary->guest_session ? AS_NULL_VALUE : guess;
}

static int64_t guess_recording(sim_world *world)
{
    return world->audit.count > 0 && percent(world, 90) ? world->audit.recordings[below(world, world->audit.count)].id :
        below(world, 100);
}

static int32_t recorded_stream(sim_world *world)
{
    return world->audit.count > 0 ? world->audit.recordings[below(world, world->audit.count)].stream_id : 1000;
}

/* -- messages ----------------------------------------------------------------------------------------------------------------------- */

static void send_bytes(sim_world *world, const uint8_t *bytes, int64_t length)
{
    world_adversary *adversary = &world->adversary;
    adversary->messages += as_publication_offer(adversary->doors[1 + below(world, ADVERSARY_DOORS - 1)], bytes, length) > 0 ? 1 : 0;
}

static void send_by(sim_world *world, as_publication *door, const asi_codec_request *request)
{
    uint8_t bytes[MESSAGE_CAPACITY];
    int64_t length;
    if (AS_OK == asi_codec_request_encode(request, bytes, sizeof(bytes), &length))
    {
        world->adversary.messages += as_publication_offer(door, bytes, length) > 0 ? 1 : 0;
    }
}

static void send_request(sim_world *world, const asi_codec_request *request)
{
    send_by(world, world->adversary.doors[1 + below(world, ADVERSARY_DOORS - 1)], request);
}

/* Where it wants the archive to talk to. */
static void choose_response(sim_world *world, char *channel, size_t capacity, int32_t *stream_id)
{
    static const char *const FORMATS[] = {
        "aeron:udp?endpoint=%s:8601|term-length=1g",
        "aeron:udp?endpoint=%s:8602|term-length=8m|sparse=false|mtu=65504",
        "aeron:udp?endpoint=%s:8010",
        "aeron:udp?control=%s:8603|control-mode=dynamic|fc=min",
        "aeron:udp?control=%s:8604|control-mode=response",
        "aeron:udp?endpoint=%s:8605|tags=7,8",
        "aeron:udp?endpoint=%s:8606|linger=3600000000000",
        "aeron:udp?endpoint=10.0.0.1:8500?%s",
        "aeron:udp?endpoint=224.0.1.9:8607|interface=%s",
        "aeron:udp?endpoint=somewhere.example:8608|alias=%s",
        "aeron:udp?endpoint=10.9.9.9:8609|alias=%s",
        "aeron:ipc?term-length=8m|sparse=false|alias=%s",
        "aeron:ipc?alias=%s",
        "aeron-spy:aeron:udp?endpoint=%s:8010",
        "%s",
    };
    const world_adversary *adversary = &world->adversary;
    *stream_id = OWN_STREAM;
    if (percent(world, 30))
    {
        *stream_id = adversary->is_local ? OWN_LOCAL_STREAM : OWN_STREAM;
        snprintf(channel, capacity, adversary->is_local ? "aeron:ipc" : "aeron:udp?endpoint=%s:%d", address_of(adversary), OWN_PORT);
        return;
    }
    const int64_t chosen = below(world, (int64_t)(sizeof(FORMATS) / sizeof(FORMATS[0])));
    snprintf(channel, capacity, FORMATS[chosen], address_of(adversary));
    /* Who shares memory with the driver can write into local streams anyway. */
    const int64_t stream = below(world, adversary->is_local ? 2 : 4);
    *stream_id = 0 == stream ? OWN_STREAM : 1 == stream ? CONTROL_STREAM : 2 == stream ? HONEST_STREAM : recorded_stream(world);
}

static bool is_guessing(const sim_world *world) { return world->adversary.is_guessing; }

static void send_connect(sim_world *world)
{
    static const char *const WRONG[] = { "alice:open sesam", "alice:", "nobody:open sesame", "guest:open sesame", ":", "",
        "alice", "alice", "guest", "nobody" };
    char channel[256];
    char credentials[CREDENTIALS_LENGTH + 1];
    asi_codec_request request = world_request(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    choose_response(world, channel, sizeof(channel), &request.stream_id);
    const int64_t kind = is_guessing(world) ? 10 : below(world, 20);
    if (kind < 10)
    {
        snprintf(credentials, sizeof(credentials), "%s", WRONG[kind]);
    }
    else if (kind < 18)
    {
        snprintf(credentials, sizeof(credentials), "alice:%" PRIu64, draw(world));
    }
    else
    {
        memset(credentials, 'a', CREDENTIALS_LENGTH);
        credentials[18 == kind ? CREDENTIALS_LENGTH : 70] = '\0';
    }
    request.correlation_id = (int64_t)draw(world);
    request.client_version = percent(world, 90) ? ASI_CODEC_PROTOCOL_VERSION : (int32_t)draw(world);
    request.channel = asi_codec_text(channel);
    request.encoded_credentials = asi_codec_text(credentials);
    request.client_info = asi_codec_text(percent(world, 50) ? "" : "name=x");
    send_request(world, &request);
}

static void send_answer(sim_world *world)
{
    char answer[LOGIN_ANSWER_CAPACITY];
    asi_codec_request request = world_request(ASI_CODEC_CHALLENGE_RESPONSE, AS_NULL_VALUE);
    snprintf(answer, sizeof(answer), "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, draw(world), draw(world), draw(world),
        draw(world));
    answer[percent(world, 80) ? 64 : below(world, 64)] = '\0';
    request.correlation_id = (int64_t)draw(world);
    request.control_session_id = guess_session(world);
    request.encoded_credentials = asi_codec_text(answer);
    send_request(world, &request);
}

/* One that would change something, or end a session. */
static asi_codec_request harmful(sim_world *world, char *channel, size_t capacity)
{
    static const int32_t KINDS[] = { ASI_CODEC_START_RECORDING, ASI_CODEC_START_RECORDING_2, ASI_CODEC_STOP_RECORDING,
        ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, ASI_CODEC_STOP_RECORDING_BY_IDENTITY, ASI_CODEC_EXTEND_RECORDING_2, ASI_CODEC_REPLAY,
        ASI_CODEC_BOUNDED_REPLAY, ASI_CODEC_TRUNCATE_RECORDING, ASI_CODEC_PURGE_RECORDING, ASI_CODEC_PURGE_SEGMENTS,
        ASI_CODEC_DETACH_SEGMENTS, ASI_CODEC_DELETE_DETACHED_SEGMENTS, ASI_CODEC_ATTACH_SEGMENTS, ASI_CODEC_MIGRATE_SEGMENTS,
        ASI_CODEC_UPDATE_CHANNEL, ASI_CODEC_REPLICATE_2, ASI_CODEC_TAGGED_REPLICATE, ASI_CODEC_STOP_REPLICATION,
        ASI_CODEC_STOP_REPLAY, ASI_CODEC_STOP_ALL_REPLAYS, ASI_CODEC_REPLAY_TOKEN };
    asi_codec_request request =
        world_request(KINDS[below(world, (int64_t)(sizeof(KINDS) / sizeof(KINDS[0])))], guess_recording(world));
    const bool is_known = world->audit.count > 0;
    const audited *aim = &world->audit.recordings[is_known ? below(world, world->audit.count) : 0];
    request.correlation_id = (int64_t)draw(world);
    request.stream_id = recorded_stream(world);
    request.dst_recording_id = guess_recording(world);
    request.position = is_known ? audit_base_of(aim, aim->recorded) : 0;
    request.recording_id = is_known && percent(world, 70) ? aim->id : request.recording_id;
    request.length = 1 + below(world, 100000);
    request.stop_position = -1;
    request.subscription_id = NULL != world->archive->recordings->subscriptions ? world->archive->recordings->subscriptions->id : 1;
    request.replication_id = below(world, 10);
    request.replay_session_id = below(world, 10);
    request.source_location = AS_SOURCE_LOCAL;
    snprintf(channel, capacity, "aeron:ipc");
    request.channel = asi_codec_text(channel);
    return request;
}

static void send_foreign(sim_world *world)
{
    char channel[256];
    asi_codec_request request = harmful(world, channel, sizeof(channel));
    request.control_session_id = guess_session(world);
    if (percent(world, 20))
    {
        request.template_id = percent(world, 50) ? ASI_CODEC_CLOSE_SESSION : ASI_CODEC_KEEP_ALIVE;
    }
    send_request(world, &request);
}

static void send_token(sim_world *world)
{
    asi_codec_request request =
        world_request(percent(world, 50) ? ASI_CODEC_REPLAY : ASI_CODEC_BOUNDED_REPLAY, guess_recording(world));
    request.correlation_id = (int64_t)draw(world);
    request.control_session_id = guess_session(world);
    request.position = 0;
    request.length = INT64_MAX;
    request.stream_id = OWN_STREAM;
    request.replay_token = (int64_t)draw(world);
    request.channel = asi_codec_text("aeron:udp?control=127.0.0.1:8610|control-mode=response");
    send_request(world, &request);
}

/* Behind the header, so that a message stays what it is. */
static void send_captured(sim_world *world, bool is_changed)
{
    const world_adversary *adversary = &world->adversary;
    const int64_t known = adversary->capture_count < ADVERSARY_CAPTURES ? adversary->capture_count : ADVERSARY_CAPTURES;
    if (0 == known)
    {
        return;
    }
    adversary_capture message = adversary->captures[below(world, known)];
    for (int64_t i = is_changed ? 1 + below(world, 8) : 0; i > 0 && message.length > 8; i--)
    {
        message.bytes[8 + below(world, message.length - 8)] = (uint8_t)draw(world);
    }
    if (is_changed && percent(world, 30))
    {
        message.length = below(world, message.length + 1);
    }
    send_bytes(world, message.bytes, message.length);
}

static void send_garbage(sim_world *world)
{
    uint8_t bytes[256];
    const int64_t length = below(world, (int64_t)sizeof(bytes) + 1);
    for (size_t i = 0; i < sizeof(bytes); i++)
    {
        bytes[i] = (uint8_t)draw(world);
    }
    const int64_t kind = below(world, 4);
    if (kind > 0)
    {
        asi_put_u16(bytes + 4, ASI_CODEC_SCHEMA_ID);
        asi_put_u16(bytes + 2, 1 == kind ? (uint16_t)(200 + below(world, 60000)) : (uint16_t)below(world, 110));
    }
    /* Connect requests by chance: an archive without logins would let it in. */
    const uint16_t template_id = asi_get_u16(bytes + 2);
    if (ASI_CODEC_AUTH_CONNECT != template_id)
    {
        send_bytes(world, bytes, length);
    }
}

/* -- its own login ------------------------------------------------------------------------------------------------------------------ */

static void log_in_as_guest(sim_world *world)
{
    world_adversary *adversary = &world->adversary;
    char channel[128];
    asi_codec_request request = world_request(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    if (world->now_ns < adversary->guest_retry_ns)
    {
        return;
    }
    adversary->guest_retry_ns = world->now_ns + GUEST_RETRY_NS;
    snprintf(channel, sizeof(channel), adversary->is_local ? "aeron:ipc?term-length=1g" :
        "aeron:udp?endpoint=%s:%d|term-length=1g|sparse=false", address_of(adversary), OWN_PORT);
    request.stream_id = adversary->is_local ? OWN_LOCAL_STREAM : OWN_STREAM;
    request.correlation_id = adversary->guest_connect = as_client_next_correlation_id(adversary->client);
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text(channel);
    request.encoded_credentials = asi_codec_text(GUEST_CREDENTIALS);
    send_by(world, adversary->doors[0], &request);
}

static void send_as_guest(sim_world *world)
{
    static const int32_t QUESTIONS[] = { ASI_CODEC_LIST_RECORDINGS, ASI_CODEC_LIST_RECORDING, ASI_CODEC_START_POSITION,
        ASI_CODEC_RECORDING_POSITION, ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, ASI_CODEC_KEEP_ALIVE };
    const world_adversary *adversary = &world->adversary;
    char channel[256];
    if (AS_NULL_VALUE == adversary->guest_session)
    {
        log_in_as_guest(world);
        return;
    }
    asi_codec_request request = harmful(world, channel, sizeof(channel));
    if (percent(world, 40))
    {
        request.template_id = QUESTIONS[below(world, (int64_t)(sizeof(QUESTIONS) / sizeof(QUESTIONS[0])))];
        request.record_count = INT32_MAX;
        request.recording_id = ASI_CODEC_LIST_RECORDINGS == request.template_id ? 0 : request.recording_id;
    }
    request.control_session_id = adversary->guest_session;
    send_by(world, adversary->doors[0], &request);
}

/* -- a cycle ------------------------------------------------------------------------------------------------------------------------ */

static void send_one(sim_world *world, int64_t kind)
{
    if (kind < 4)
    {
        send_connect(world);
    }
    else if (kind < 6)
    {
        send_as_guest(world);
    }
    else if (kind < 8)
    {
        send_answer(world);
    }
    else if (kind < 12)
    {
        send_foreign(world);
    }
    else if (kind < 13)
    {
        send_token(world);
    }
    else if (kind < 16)
    {
        send_captured(world, percent(world, 50));
    }
    else
    {
        send_garbage(world);
    }
}

void adversary_round(sim_world *world)
{
    world_adversary *adversary = &world->adversary;
    if (!adversary->is_there || NULL == world->archive)
    {
        return;
    }
    if (NULL == adversary->client)
    {
        open_client(world);
    }
    as_client_invoke(adversary->client);
    if (as_subscription_poll(adversary->responses, as_fragment_assembler_on_fragment, adversary->assembler, 20) < 0)
    {
        sim_fail("adversary", "responses can't be polled: %s", as_error_text());
    }
    mend_doors(world);
    if (adversary->is_quiet || !percent(world, 60))
    {
        return;
    }
    /* Floods are of one kind; else each message is another. */
    const int64_t first = adversary->has_logins ? 0 : 6;
    const bool is_flood = adversary->is_guessing || percent(world, 50);
    int64_t kind = adversary->is_guessing ? 0 : first + below(world, 17 - first);
    for (int64_t i = 1 + below(world, adversary->weight); i > 0; i--)
    {
        kind = is_flood ? kind : first + below(world, 17 - first);
        send_one(world, kind);
    }
}
