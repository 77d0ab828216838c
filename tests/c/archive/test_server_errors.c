/* Goal: requests with wrong arguments are answered with the code, relevant id and text of a stock archive. Method: the recordings
 * of the captured run are made again, then each captured request is built from its description and the answers are compared with
 * the captured ones; numbers that a run chooses itself (session, subscription and term ids) are not compared. OURS lists where
 * this archive answers differently on purpose. */
#include "server_rig.h"

#define ACTIVE_CHANNEL "aeron:ipc?term-length=64k|mtu=1408|alias=active"
#define LINE_CAPACITY 2048
#define QUIET_NS INT64_C(3000000000)

static test_rig rig;
static raw_session *session;
static as_publication *active;
static as_publication *extra[2];
static as_counter *limit_counter;

/* -- departures ----------------------------------------------------------------------------------------------------------------- */

static const struct
{
    const char *request;
    const char *answer;
} OURS[] = {
    /* Spec: 07 §7 - a channel that does not parse is answered. */
    { "replay 0 0 100 channel ''", "ERROR 0 \"failed to process replayChannel - Aeron URIs must start with 'aeron:', found: \"" },
    { "replay 0 0 100 channel 'bogus'",
        "ERROR 0 \"failed to process replayChannel - Aeron URIs must start with 'aeron:', found: bogus\"" },
    { "replay 0 0 100 channel 'aeron:nonsense'", "ERROR 0 \"failed to process replayChannel - unknown media: nonsense\"" },
    /* Spec: 08 §6 - a listing of nothing ends. */
    { "list recordings from 0 count 0", "RECORDING_UNKNOWN(0)" },
    /* Spec: 08 §7.1 row 10 - a refused replay does not start. */
    { "replay recording 7 position 317056 length -2 aeron:ipc 4000, no subscriber",
        "ERROR 15 \"when replaying and stopping the replay length must be non-zero, recordingId=7\"" },
};

/* -- answers as text ---------------------------------------------------------------------------------------------------------- */

static void append(char *to, const char *text)
{
    const size_t used = strlen(to);
    const size_t room = LINE_CAPACITY - used;
    CHECK((size_t)snprintf(to + used, room, "%s", 0 == used ? "" : " ; ") + strlen(text) < room);
    snprintf(to + strlen(to), LINE_CAPACITY - strlen(to), "%s", text);
}

static void describe(const asi_codec_event *event, char *to)
{
    static const char *const NAMES[] = { "OK", "ERROR", "RECORDING_UNKNOWN", "SUBSCRIPTION_UNKNOWN" };
    if (ASI_CODEC_RECORDING_DESCRIPTOR == event->template_id)
    {
        snprintf(to, LINE_CAPACITY, "descriptor(%" PRId64 ")", event->recording_id);
    }
    else if (ASI_CODEC_ERROR == event->code)
    {
        snprintf(to, LINE_CAPACITY, "ERROR %" PRId64 " \"%.*s\"", event->relevant_id, (int)event->error_message.length,
            event->error_message.data);
    }
    else
    {
        snprintf(to, LINE_CAPACITY, "%s(%" PRId64 ")", NAMES[event->code & 3], event->relevant_id);
    }
}

static void answers(int64_t correlation_id, char *to)
{
    to[0] = '\0';
    for (int i = 0; i < session->event_count; i++)
    {
        char one[LINE_CAPACITY];
        if (session->events[i].correlation_id == correlation_id &&
            ASI_CODEC_RECORDING_SIGNAL != session->events[i].template_id)
        {
            describe(&session->events[i], one);
            append(to, one);
        }
    }
    if ('\0' == to[0])
    {
        append(to, "no response");
    }
}

/* Numbers of a run become '#': those behind the names, and OK's of requests that make something. */
static void normalise(char *text, bool hides_ok)
{
    static const char *const NAMES[] = { "init-term-id=", "|term-id=", "replaySessionId=", "nitialTermId=", "OK(" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]) - (hides_ok ? 0 : 1); i++)
    {
        for (char *at = strstr(text, NAMES[i]); NULL != at; at = strstr(at, NAMES[i]))
        {
            at += strlen(NAMES[i]);
            const size_t digits = strspn(at, "-0123456789");
            memmove(at + 1, at + digits, strlen(at + digits) + 1);
            *at = '#';
        }
    }
}

/* -- the world of the capture --------------------------------------------------------------------------------------------------- */

static void publish_and_stop(const char *channel, int32_t stream_id, int64_t length, int64_t count, int64_t end)
{
    raw_forget(session);
    asi_codec_request request = start_of("aeron:ipc?alias=world", stream_id, true);
    raw_ask_ok(session, &request);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    raw_await_signal(session, AS_SIGNAL_START, request.correlation_id);
    const int64_t position = publish(&rig, publication, length, count);
    CHECK_I64(position, end);
    as_publication_close(publication);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id)->position, end);
    rig_turn_times(&rig, 10);
}

static void make_world(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.max.concurrent.replays", "2");
    rig_set(&rig, "aeron.archive.max.concurrent.recordings", "3");
    rig_set(&rig, "aeron.archive.connect.timeout", "1s");
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    publish_and_stop("aeron:ipc?term-length=64k|mtu=1408", 1001, 1000, 500, 528512);
    publish_and_stop("aeron:ipc?term-length=64k|mtu=1408", 1002, 1, 0, 0);
    publish_and_stop("aeron:ipc?term-length=64k|mtu=4096", 1003, 1000, 10, 10560);
    publish_and_stop("aeron:ipc?term-length=64k|mtu=1408", 1004, 1000, 10, 10560);
    publish_and_stop("aeron:ipc?term-length=64k|mtu=1408", 1005, 5000, 20, 106752);
    publish_and_stop("aeron:ipc?term-length=128k|mtu=1408", 1001, 1000, 10, 10560);
    publish_and_stop(
        "aeron:ipc?term-length=64k|mtu=1408|init-term-id=5|term-id=9|term-offset=0", 1006, 1000, 252, 262144 + 266368);
    CHECK_I64(asi_catalog_invalidate(rig.archive->catalog, 3, ASI_RECORDING_DELETED), AS_OK);
    asi_codec_request request = start_of(ACTIVE_CHANNEL, 1010, true);
    raw_ask_ok(session, &request);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, ACTIVE_CHANNEL, 1010, &active), AS_OK);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_START, request.correlation_id)->recording_id, 7);
    CHECK_I64(publish(&rig, active, 1000, 300), 317056);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, 7) == 317056);
    CHECK_I64(as_client_add_counter(rig.client, 2000, NULL, 0, "limit", &limit_counter), AS_OK);
    as_counter_set(limit_counter, 64);
}

static void close_world(void)
{
    as_publication_close(active);
    as_counter_close(limit_counter);
    raw_close(session);
    rig_close(&rig);
}

/* -- requests by their description -------------------------------------------------------------------------------------------- */

static asi_codec_request query(int32_t template_id, int64_t recording_id, int32_t count)
{
    asi_codec_request request = request_of(template_id, recording_id);
    request.record_count = count;
    request.stream_id = 1001;
    request.session_id = 424242;
    request.channel = asi_codec_text("");
    return request;
}

static asi_codec_request list_subscriptions(int32_t pseudo_index, int32_t count, const char *fragment)
{
    asi_codec_request request = query(ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, AS_NULL_VALUE, count);
    request.pseudo_index = pseudo_index;
    request.channel = asi_codec_text(fragment);
    return request;
}

static asi_codec_request stop_channel(const char *channel, int32_t stream_id)
{
    asi_codec_request request = start_of(channel, stream_id, false);
    request.template_id = ASI_CODEC_STOP_RECORDING;
    return request;
}

static asi_codec_request bounded(int64_t position, int32_t counter_id)
{
    asi_codec_request request = replay_of(0, position, 100, "aeron:ipc", 4004);
    request.template_id = ASI_CODEC_BOUNDED_REPLAY;
    request.limit_counter_id = counter_id;
    return request;
}

static bool starts(const char *text, const char *with) { return 0 == strncmp(text, with, strlen(with)); }

/* Text between the first pair of single quotes. */
static const char *quoted(const char *line)
{
    static char text[256];
    const char *begin = strchr(line, '\'');
    CHECK(NULL != begin);
    const char *end = strchr(begin + 1, '\'');
    CHECK(NULL != end);
    snprintf(text, sizeof(text), "%.*s", (int)(end - begin - 1), begin + 1);
    return text;
}

static bool build_recording_request(const char *line, asi_codec_request *request)
{
    long long id;
    if (starts(line, "start recording '"))
    {
        *request = start_of(quoted(line), 1, false);
    }
    else if (starts(line, "start recording of the active"))
    {
        *request = start_of(ACTIVE_CHANNEL, 1010, true);
    }
    else if (starts(line, "same, without autoStop"))
    {
        *request = start_of(ACTIVE_CHANNEL, 1010, false);
        request->template_id = ASI_CODEC_START_RECORDING;
    }
    else if (starts(line, "same key, other alias"))
    {
        *request = start_of("aeron:ipc?alias=other", 1010, true);
    }
    else if (starts(line, "same channel with session-id=5"))
    {
        *request = start_of("aeron:ipc?session-id=5", 1010, true);
    }
    else if (starts(line, "start recording stream 1001"))
    {
        *request = start_of("aeron:ipc", 1001, false);
    }
    else if (1 == sscanf(line, "start recording stream %lld (becomes", &id))
    {
        *request = start_of("aeron:ipc", (int32_t)id, true);
    }
    else if (starts(line, "start recording with 3 of 3"))
    {
        *request = start_of("aeron:ipc", 1052, true);
    }
    else if (starts(line, "extend recording with 3 of 3"))
    {
        *request = extend_of(0, "aeron:ipc", 1001, true);
    }
    else if (starts(line, "extend 0 with stream 5"))
    {
        *request = extend_of(0, "aeron:ipc", 5, true);
    }
    else if (starts(line, "extend active 7"))
    {
        *request = extend_of(7, "aeron:ipc?alias=x", 1010, true);
    }
    else if (starts(line, "extend 0 with '"))
    {
        *request = extend_of(0, quoted(line), 1001, true);
    }
    else if (starts(line, "extend 0"))
    {
        *request = extend_of(0, RIG_CHANNEL, 1001, true);
    }
    else if (1 == sscanf(line, "extend %lld", &id))
    {
        *request = extend_of(id, "aeron:ipc", 1001, true);
    }
    else if (starts(line, "stop recording aeron:ipc?session-id=5"))
    {
        *request = stop_channel("aeron:ipc?session-id=5", 1010);
    }
    else if (starts(line, "stop recording aeron:ipc 1001"))
    {
        *request = stop_channel("aeron:ipc", 1001);
    }
    else if (starts(line, "stop recording '"))
    {
        *request = stop_channel(quoted(line), 9999);
    }
    else if (1 == sscanf(line, "stop recording by subscription %lld", &id))
    {
        *request = request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, AS_NULL_VALUE);
        request->subscription_id = id;
    }
    else if (1 == sscanf(line, "stop recording by identity %lld", &id))
    {
        *request = request_of(ASI_CODEC_STOP_RECORDING_BY_IDENTITY, id);
    }
    else
    {
        return false;
    }
    return true;
}

static bool build_replay_request(const char *line, asi_codec_request *request)
{
    long long id, position, length;
    if (3 == sscanf(line, "replay recording %lld position %lld length %lld", &id, &position, &length))
    {
        *request = replay_of(id, position, length, "aeron:ipc", 4000);
    }
    else if (starts(line, "replay 0 0 100 without subscriber"))
    {
        *request = replay_of(0, 0, 100, "aeron:ipc", 4001);
    }
    else if (starts(line, "replay 0 0 100 channel"))
    {
        *request = replay_of(0, 0, 100, quoted(line), 4002);
    }
    else if (1 == sscanf(line, "replay fileIoMaxLength %lld", &length))
    {
        *request = replay_of(0, 0, 100, "aeron:ipc", 4003);
        request->file_io_max_length = (int32_t)length;
    }
    else if (starts(line, "replay with replay token"))
    {
        *request = replay_of(0, 0, 100, "aeron:ipc", 4003);
        request->replay_token = 12345;
    }
    else if (1 == sscanf(line, "bounded replay, limit counter %lld", &id))
    {
        *request = bounded(0, (int32_t)id);
    }
    else if (starts(line, "bounded replay from 1056"))
    {
        *request = bounded(1056, as_counter_id(limit_counter));
    }
    else if (1 == sscanf(line, "replay %lld of at most", &id) && NULL != strstr(line, " of at most "))
    {
        *request = replay_of(7, 0, INT64_MAX, "aeron:ipc", 4010);
    }
    else if (starts(line, "replay 0 from 131072"))
    {
        *request = replay_of(0, 131072, 100, "aeron:ipc", 4020);
    }
    else if (starts(line, "replay 0 from 0, second"))
    {
        *request = replay_of(0, 0, -1, "aeron:ipc", 4021);
    }
    else if (1 == sscanf(line, "stop replay %lld", &id))
    {
        *request = request_of(ASI_CODEC_STOP_REPLAY, AS_NULL_VALUE);
        request->replay_session_id = id;
    }
    else if (starts(line, "stop all replays"))
    {
        *request = request_of(ASI_CODEC_STOP_ALL_REPLAYS, starts(line, "stop all replays of 99") ? 99 : -1);
    }
    else
    {
        return false;
    }
    return true;
}

static bool build_query(const char *line, asi_codec_request *request)
{
    static const struct
    {
        const char *name;
        int32_t template_id;
    } POSITIONS[] = {
        { "start position %lld", ASI_CODEC_START_POSITION },
        { "stop position %lld", ASI_CODEC_STOP_POSITION },
        { "recording position %lld", ASI_CODEC_RECORDING_POSITION },
        { "max recorded position %lld", ASI_CODEC_MAX_RECORDED_POSITION },
        { "list recording %lld", ASI_CODEC_LIST_RECORDING },
        { "find last min %lld", ASI_CODEC_FIND_LAST_MATCHING_RECORDING },
    };
    long long id, count;
    for (size_t i = 0; i < sizeof(POSITIONS) / sizeof(POSITIONS[0]); i++)
    {
        if (1 == sscanf(line, POSITIONS[i].name, &id))
        {
            *request = query(POSITIONS[i].template_id, id, 0);
            return true;
        }
    }
    if (2 == sscanf(line, "list recordings from %lld count %lld", &id, &count))
    {
        *request = query(ASI_CODEC_LIST_RECORDINGS, id, (int32_t)count);
    }
    else if (starts(line, "list for uri"))
    {
        *request = query(ASI_CODEC_LIST_RECORDINGS_FOR_URI, 0, 100);
        request->channel = asi_codec_text(starts(line, "list for uri, none") ? "nothing like it" : "");
    }
    else if (starts(line, "find last, wrong session"))
    {
        *request = query(ASI_CODEC_FIND_LAST_MATCHING_RECORDING, 0, 0);
    }
    else if (1 == sscanf(line, "list subscriptions pseudo index %lld", &id))
    {
        *request = list_subscriptions((int32_t)id, 10, "");
    }
    else if (1 == sscanf(line, "list subscriptions count %lld", &count))
    {
        *request = list_subscriptions(0, (int32_t)count, "");
    }
    else if (starts(line, "list subscriptions, none"))
    {
        *request = list_subscriptions(0, 10, "nothing like it");
    }
    else if (starts(line, "archive id"))
    {
        *request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    }
    else
    {
        return false;
    }
    return true;
}

/* -- comparing -------------------------------------------------------------------------------------------------------------------- */

/* What the run did before this request, beyond the requests themselves. */
static void prepare(const char *line)
{
    if (starts(line, "start recording stream 1050"))
    {
        asi_codec_request request = stop_channel("aeron:ipc", 1); /* open since a line above: it holds a slot here. Spec: 11 A4 */
        raw_ask_ok(session, &request);
        raw_forget_answer(session);
    }
    for (int i = 0; i < 2 && starts(line, "start recording with 3 of 3"); i++)
    {
        CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, 1050 + i, &extra[i]), AS_OK);
        UNTIL(&rig, rig.archive->uses->count[ASI_USE_RECORDS] == 2 + i);
    }
    for (int i = 0; i < 2 && starts(line, "extend 99"); i++)
    {
        as_publication_close(extra[i]);
    }
    if (starts(line, "extend 99"))
    {
        UNTIL(&rig, rig.archive->uses->count[ASI_USE_RECORDS] == 1);
    }
    if (rig.archive->uses->count[ASI_USE_REPLAYS] > 0 && !starts(line, "replay 2 of") && !starts(line, "replay 3 of"))
    {
        rig.clock_ahead_ns += 2 * RIG_SECOND; /* no subscriber */
        UNTIL(&rig, rig.archive->uses->count[ASI_USE_REPLAYS] == 0);
    }
    if (starts(line, "replay 0 from 131072"))
    {
        char path[AS_PATH_MAX];
        snprintf(path, sizeof(path), "%s/0-131072.rec", rig.archive_dir);
        CHECK(0 == unlink(path));
    }
}

/* A publication that does not go on where recording 0 ends, in the way that is described. */
static as_publication *publish_wrongly(const char *line)
{
    asi_catalog_record record;
    char channel[160];
    CHECK(asi_catalog_find(rig.archive->catalog, 0, &record));
    const bool is_at_start = NULL != strstr(line, "joinPosition 0") || NULL != strstr(line, "a wrong publication");
    const int32_t initial_term_id = record.initial_term_id + (NULL != strstr(line, "initialTermId") ? 1 : 0);
    const int64_t position = record.stop_position - (NULL != strstr(line, "stop - 1056") ? 1056 : 0);
    const int32_t term_length = NULL != strstr(line, "term length 128k") ? 131072 : 65536;
    const int32_t term_id = (int32_t)((uint32_t)initial_term_id + (uint32_t)(position / term_length));
    snprintf(channel, sizeof(channel), "aeron:ipc?mtu=%d|term-length=%d|init-term-id=%d|term-id=%d|term-offset=%d",
        NULL != strstr(line, "mtu 4096") ? 4096 : 1408, term_length, initial_term_id, is_at_start ? initial_term_id : term_id,
        is_at_start ? 0 : (int32_t)(position % term_length));
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, 1001, &publication), AS_OK);
    return publication;
}

static void on_replayed(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)data;
    (void)length;
    (void)header;
}

/* Reads answers until the expected one, or until no more arrive. */
static bool await_answers(const char *line, const asi_codec_request *request, const char *expected, bool hides_ok, char *actual)
{
    const bool is_slow = NULL != strstr(expected, "no connection established") || NULL != strstr(expected, "not created");
    const bool has_publication = NULL != strstr(expected, "ERROR 9");
    as_publication *publication = NULL;
    as_subscription *reader = NULL;
    if (NULL != strstr(expected, "recording segment not found"))
    {
        CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", request->stream_id, &reader), AS_OK);
    }
    const int64_t until_ns = rig_system_ns() + QUIET_NS;
    do
    {
        rig_turn_times(&rig, 20);
        raw_poll(session);
        answers(request->correlation_id, actual);
        normalise(actual, hides_ok);
        rig.clock_ahead_ns += is_slow ? RIG_SECOND / 10 : 0;
        publication = has_publication && NULL == publication && starts(actual, "OK") ? publish_wrongly(line) : publication;
        CHECK(NULL == reader || as_subscription_poll(reader, on_replayed, NULL, 10) >= 0);
    } while (0 != strcmp(expected, actual) && rig_system_ns() < until_ns);
    as_publication_close(publication);
    as_subscription_close(reader);
    return 0 == strcmp(expected, actual);
}

static bool check_line(const char *line, const char *captured)
{
    char expected[LINE_CAPACITY];
    char actual[LINE_CAPACITY];
    asi_codec_request request;
    snprintf(expected, sizeof(expected), "%s", captured);
    for (size_t i = 0; i < sizeof(OURS) / sizeof(OURS[0]); i++)
    {
        if (0 == strcmp(OURS[i].request, line))
        {
            snprintf(expected, sizeof(expected), "%s", OURS[i].answer);
        }
    }
    if (!build_recording_request(line, &request) && !build_replay_request(line, &request) && !build_query(line, &request))
    {
        fprintf(stderr, "no such request: %s\n", line);
        return false;
    }
    const bool hides_ok = starts(line, "start recording") || starts(line, "same") || starts(line, "extend") ||
        starts(line, "replay") || starts(line, "bounded");
    normalise(expected, hides_ok);
    prepare(line);
    raw_forget(session);
    raw_send(session, &request);
    if (await_answers(line, &request, expected, hides_ok, actual))
    {
        return true;
    }
    fprintf(stderr, "%s\n  expected %s\n  actual   %s\n", line, expected, actual);
    return false;
}

static void wrong_arguments_are_answered_as_stock_does(void)
{
    int64_t length;
    char *text = (char *)golden_load("archive-control/errors.txt", &length);
    int count = 0;
    int failed_count = 0;
    make_world();
    for (char *line = strtok(text, "\n"); NULL != line; line = strtok(NULL, "\n"))
    {
        char *answer = strstr(line, " | ");
        if ('#' == line[0])
        {
            continue;
        }
        CHECK(NULL != answer);
        *answer = '\0';
        failed_count += check_line(line, answer + 3) ? 0 : 1;
        count++;
    }
    CHECK_I64(failed_count, 0);
    CHECK(count > 90);
    close_world();
    free(text);
}

int main(void)
{
    RUN(wrong_arguments_are_answered_as_stock_does);
    return 0;
}
