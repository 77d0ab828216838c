/* An archive that the test's thread invokes, on a driver's thread, under a clock that the test can advance and on files that can
 * fail; and a bare control session that sends requests and takes responses as messages of the codec, so that a test proves the
 * protocol and not the archive client. Nothing sleeps: UNTIL runs the duty cycles until a condition holds or 20 s have passed. */
#ifndef AS_TESTS_SERVER_RIG_H
#define AS_TESTS_SERVER_RIG_H

#include <errno.h>
#include <sched.h>

#include "aeron_spark/as_driver.h"
#include "server/control.h"
#include "server/deletions.h"
#include "server/logins.h"
#include "server/on_request.h"
#include "server/recordings.h"
#include "server/replays.h"
#include "server/server.h"
#include "support.h"

#define RIG_TERM_LENGTH (64 * 1024)
#define RIG_SEGMENT_LENGTH (128 * 1024)
#define RIG_CHANNEL "aeron:ipc?term-length=64k|mtu=1408"
#define RIG_CONTROL_STREAM 10
#define RIG_TIMEOUT_NS INT64_C(20000000000)
#define RIG_SECOND INT64_C(1000000000)
#define RIG_EVENTS_MAX 512
#define RIG_FILES_MAX 1024
#define RIG_MESSAGE_CAPACITY 4096
/* A test that needs more of the driver defines this before it includes the rig. */
#ifndef RIG_SET_DRIVER
#define RIG_SET_DRIVER(config) (void)0
#endif


typedef struct test_rig
{
    char scratch[SCRATCH_CAPACITY];
    char aeron_dir[SCRATCH_CAPACITY + 16];
    char archive_dir[SCRATCH_CAPACITY + 16];
    as_driver *driver;
    as_client *client;
    as_archive *archive;
    as_archive *other;            /* turned too, opened and closed by the test; NULL: none */
    int32_t control_stream;       /* of the archive that raw_connect goes to; 0: RIG_CONTROL_STREAM */
    as_archive_config *config;
    bool has_threads;             /* the archive runs its own */
    int64_t clock_ahead_ns;       /* of the archive's clock before the system's */
    int64_t clock_set_ms;         /* by which its time of day was set, forth or back */
    /* The disk: counts writes of segment files; from `fail_at` on (0: never) they answer -fail_with. */
    asi_file_ops files;
    bool is_segment[RIG_FILES_MAX]; /* by descriptor; numbers are used again by other threads */
    int64_t write_count;
    int64_t fail_at;
    int fail_with;
    int64_t usable_space;         /* -1: as it is */
} test_rig;

static inline int64_t rig_system_ns(void)
{
    const asi_clock clock = asi_clock_system();
    return asi_clock_ns(&clock);
}

static inline int64_t rig_nano_time(void *context)
{
    return rig_system_ns() + asi_load_relaxed_i64(&((test_rig *)context)->clock_ahead_ns);
}

static inline int64_t rig_epoch_ms(void *context)
{
    const asi_clock clock = asi_clock_system();
    const test_rig *rig = context;
    return asi_clock_ms(&clock) + asi_load_relaxed_i64(&rig->clock_ahead_ns) / 1000000 + asi_load_relaxed_i64(&rig->clock_set_ms);
}

static inline void rig_turn(test_rig *rig)
{
    int work_count = 0;
    if (NULL != rig->archive && !rig->has_threads)
    {
        work_count += as_archive_do_work(rig->archive);
    }
    if (NULL != rig->other)
    {
        work_count += as_archive_do_work(rig->other);
    }
    if (NULL != rig->client)
    {
        work_count += as_client_invoke(rig->client);
    }
    if (0 == work_count)
    {
        sched_yield(); /* the driver's thread, or the archive's, has to go on first */
    }
}

#define UNTIL(rig, condition)                                                                              \
    do                                                                                                     \
    {                                                                                                      \
        const int64_t until_ns = rig_system_ns() + RIG_TIMEOUT_NS;                                        \
        while (!(condition))                                                                               \
        {                                                                                                  \
            if (rig_system_ns() > until_ns)                                                                \
            {                                                                                              \
                fprintf(stderr, "%s:%d: did not happen in time: %s\n", __FILE__, __LINE__, #condition);    \
                exit(1);                                                                                   \
            }                                                                                              \
            rig_turn(rig);                                                                                 \
        }                                                                                                  \
    } while (0)

/* Turns the world for a while, to show that something does not happen; archive time is pushed by the caller where it matters. */
static inline void rig_turn_times(test_rig *rig, int times)
{
    for (int i = 0; i < times; i++)
    {
        rig_turn(rig);
    }
}

/* -- files --------------------------------------------------------------------------------------------------------------------- */

static inline int rig_open_file(void *context, const char *path, asi_file_mode mode)
{
    test_rig *rig = context;
    const asi_file_ops *posix = asi_file_ops_posix();
    const int fd = posix->open(posix->context, path, mode);
    if (fd >= 0 && fd < RIG_FILES_MAX)
    {
        const size_t length = strlen(path);
        asi_store_release_bool(&rig->is_segment[fd], length > 4 && 0 == strcmp(path + length - 4, ".rec"));
    }
    return fd;
}

static inline int64_t rig_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    test_rig *rig = context;
    const asi_file_ops *posix = asi_file_ops_posix();
    if (fd < RIG_FILES_MAX && asi_load_acquire_bool(&rig->is_segment[fd]))
    {
        const int64_t count = asi_fetch_add_i64(&rig->write_count, 1) + 1;
        if (0 != rig->fail_at && count >= rig->fail_at)
        {
            return -rig->fail_with;
        }
    }
    return posix->pwrite(posix->context, fd, from, length, offset);
}

static inline int64_t rig_usable_space(void *context, const char *path)
{
    const test_rig *rig = context;
    const asi_file_ops *posix = asi_file_ops_posix();
    return rig->usable_space >= 0 ? rig->usable_space : posix->usable_space(posix->context, path);
}

/* Only the calls above look at the context, so the others may get it too. */
static inline void rig_init_files(test_rig *rig)
{
    rig->files = *asi_file_ops_posix();
    rig->files.open = rig_open_file;
    rig->files.pwrite = rig_pwrite;
    rig->files.usable_space = rig_usable_space;
    rig->files.context = rig;
    rig->usable_space = -1;
}

/* -- life ------------------------------------------------------------------------------------------------------------------------ */

static inline void rig_set(test_rig *rig, const char *name, const char *value)
{
    CHECK_I64(as_archive_config_set(rig->config, name, value), AS_OK);
}

static inline as_result rig_try_open_archive(test_rig *rig)
{
    const asi_clock clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = rig };
    return asi_archive_open_with(rig->config, &rig->files, &clock, &rig->archive);
}

static inline void rig_open_archive(test_rig *rig)
{
    CHECK_I64(rig_try_open_archive(rig), AS_OK);
    CHECK_I64(as_archive_start(rig->archive), AS_OK);
}

static inline void rig_close_archive(test_rig *rig)
{
    as_archive_close(rig->archive);
    rig->archive = NULL;
}

static inline void rig_open_driver(test_rig *rig)
{
    as_driver_config *config = NULL;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir", rig->aeron_dir), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.threading.mode", "SHARED"), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir.delete.on.start", "true"), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir.delete.on.shutdown", "true"), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.ipc.term.buffer.length", "64k"), AS_OK);
    RIG_SET_DRIVER(config);
    CHECK_I64(as_driver_open(config, NULL, NULL, &rig->driver), AS_OK);
    CHECK_I64(as_driver_start(rig->driver), AS_OK);
    as_driver_config_close(config);
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = rig->aeron_dir;
    options.use_invoker = true;
    CHECK_I64(as_client_open(&options, &rig->client), AS_OK);
}

/* Driver, client and configuration; the archive is opened by rig_open_archive, after settings of the test's own. */
static inline void rig_open(test_rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig_init_files(rig);
    scratch_create(rig->scratch);
    snprintf(rig->aeron_dir, sizeof(rig->aeron_dir), "%s/aeron", rig->scratch);
    snprintf(rig->archive_dir, sizeof(rig->archive_dir), "%s/archive", rig->scratch);
    rig_open_driver(rig);
    CHECK_I64(as_archive_config_open(&rig->config), AS_OK);
    rig_set(rig, "aeron.dir", rig->aeron_dir);
    rig_set(rig, "aeron.archive.dir", rig->archive_dir);
    rig_set(rig, "aeron.archive.threading.mode", "INVOKER");
    rig_set(rig, "aeron.archive.segment.file.length", "128k");
    rig_set(rig, "aeron.archive.id", "42");
}

static inline void rig_close(test_rig *rig)
{
    rig_close_archive(rig);
    as_client_close(rig->client);
    as_driver_close(rig->driver);
    as_archive_config_close(rig->config);
    scratch_delete(rig->scratch);
}

/* Value of the archive's counter of that type. */
static inline int64_t rig_counter(const test_rig *rig, int32_t type_id)
{
    as_inspector *inspector = NULL;
    CHECK_I64(as_inspector_open(rig->aeron_dir, &inspector), AS_OK);
    int64_t value = AS_NULL_VALUE;
    for (int32_t id = 0; id <= as_inspector_max_counter_id(inspector); id++)
    {
        as_counter_row row;
        if (AS_OK == as_inspector_counter(inspector, id, &row) && type_id == row.type_id)
        {
            value = row.value;
        }
    }
    as_inspector_close(inspector);
    return value;
}

/* Whether the archive's error log holds it. */
static inline bool rig_has_logged(const test_rig *rig, const char *text)
{
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(rig->archive_dir, &info), AS_OK);
    asi_map map;
    CHECK_I64(asi_map_open(&map, info.path, 8192, false), AS_OK);
    const size_t length = strlen(text);
    const uint8_t *at = map.base;
    const uint8_t *const end = at + map.length - length + 1;
    /* A byte at a time, the sanitizers' memcmp would need half a minute for a thousand searches of a log. */
    while (NULL != (at = memchr(at, text[0], (size_t)(end - at))) && 0 != memcmp(at, text, length))
    {
        at++;
    }
    const bool found = NULL != at;
    asi_map_close(&map);
    return found;
}

/* -- a control session ------------------------------------------------------------------------------------------------------------ */

typedef struct raw_session
{
    test_rig *rig;
    as_publication *requests;
    as_subscription *responses;
    as_fragment_assembler *assembler;
    int64_t id;
    int64_t last_correlation_id;
    /* Everything that came, pings left out; texts point into `bytes`. */
    asi_codec_event events[RIG_EVENTS_MAX];
    uint8_t bytes[RIG_EVENTS_MAX][RIG_MESSAGE_CAPACITY];
    int64_t lengths[RIG_EVENTS_MAX];
    int event_count;
    int ping_count;
} raw_session;

static inline void raw_on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    raw_session *session = context;
    (void)header;
    CHECK(length <= RIG_MESSAGE_CAPACITY && session->event_count < RIG_EVENTS_MAX);
    uint8_t *bytes = session->bytes[session->event_count];
    memcpy(bytes, data, (size_t)length);
    asi_codec_event *event = &session->events[session->event_count];
    CHECK_I64(asi_codec_event_decode_untrusted(bytes, length, event), AS_OK);
    if (ASI_CODEC_PING == event->template_id)
    {
        session->ping_count++;
        return;
    }
    session->lengths[session->event_count++] = length;
}

static inline void raw_poll(raw_session *session)
{
    CHECK(as_subscription_poll(session->responses, as_fragment_assembler_on_fragment, session->assembler, 10) >= 0);
}

static inline int64_t raw_offer(raw_session *session, const uint8_t *bytes, int64_t length)
{
    int64_t position;
    UNTIL(session->rig, (position = as_publication_offer(session->requests, bytes, length)) > 0);
    return position;
}

static inline void raw_send(raw_session *session, asi_codec_request *request)
{
    uint8_t bytes[RIG_MESSAGE_CAPACITY];
    int64_t length;
    request->control_session_id = session->id;
    request->correlation_id = as_client_next_correlation_id(session->rig->client);
    session->last_correlation_id = request->correlation_id;
    CHECK_I64(asi_codec_request_encode(request, bytes, sizeof(bytes), &length), AS_OK);
    raw_offer(session, bytes, length);
}

/* First event of that kind with that correlation id; NULL if it has not come. */
static inline const asi_codec_event *raw_find(const raw_session *session, int32_t template_id, int64_t correlation_id)
{
    for (int i = 0; i < session->event_count; i++)
    {
        if (session->events[i].template_id == template_id && session->events[i].correlation_id == correlation_id)
        {
            return &session->events[i];
        }
    }
    return NULL;
}

static inline const asi_codec_event *raw_await(raw_session *session, int32_t template_id, int64_t correlation_id)
{
    const asi_codec_event *found = NULL;
    UNTIL(session->rig, (raw_poll(session), NULL != (found = raw_find(session, template_id, correlation_id))));
    return found;
}

static inline const asi_codec_event *raw_ask(raw_session *session, asi_codec_request *request)
{
    raw_send(session, request);
    return raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request->correlation_id);
}

/* A request that must be answered OK; gives the relevant id. */
static inline int64_t raw_ask_ok(raw_session *session, asi_codec_request *request)
{
    const asi_codec_event *event = raw_ask(session, request);
    if (ASI_CODEC_OK != event->code)
    {
        fprintf(stderr, "request %d: code %d, relevant id %" PRId64 ": %.*s\n", request->template_id, event->code,
            event->relevant_id, (int)event->error_message.length, event->error_message.data);
        exit(1);
    }
    return event->relevant_id;
}

static inline void check_error(const asi_codec_event *event, int32_t code, const char *text)
{
    char actual[RIG_MESSAGE_CAPACITY];
    snprintf(actual, sizeof(actual), "%.*s", (int)event->error_message.length, event->error_message.data);
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    CHECK_TEXT(actual, text);
    CHECK_I64(event->relevant_id, code);
}

static inline void raw_forget(raw_session *session) { session->event_count = 0; }

/* After a question that is asked until its answer is the wanted one: an answer that nothing followed makes room for the next. */
static inline void raw_forget_answer(raw_session *session)
{
    if (session->events[session->event_count - 1].correlation_id == session->last_correlation_id)
    {
        session->event_count--;
    }
}

/* Streams of a session, connected to nothing yet. */
static inline raw_session *raw_open(test_rig *rig)
{
    raw_session *session = calloc(1, sizeof(*session));
    CHECK(NULL != session);
    session->rig = rig;
    int32_t session_id;
    char channel[128];
    const int32_t control_stream = 0 == rig->control_stream ? RIG_CONTROL_STREAM : rig->control_stream;
    CHECK_I64(as_client_next_session_id(rig->client, control_stream, &session_id), AS_OK);
    snprintf(channel, sizeof(channel), "aeron:ipc?term-length=64k|session-id=%d", session_id);
    CHECK_I64(as_client_add_subscription(rig->client, channel, 20, &session->responses), AS_OK);
    CHECK_I64(as_client_add_exclusive_publication(rig->client, channel, control_stream, &session->requests), AS_OK);
    CHECK_I64(as_fragment_assembler_open(raw_on_message, session, &session->assembler), AS_OK);
    return session;
}

static inline void raw_send_connect(raw_session *session, int32_t version)
{
    as_subscription_constants constants;
    as_subscription_get_constants(session->responses, &constants);
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
    request.stream_id = 20;
    request.client_version = version;
    request.channel = asi_codec_text(constants.channel);
    request.client_info = asi_codec_text("name=test");
    raw_send(session, &request);
}

static inline raw_session *raw_connect(test_rig *rig)
{
    raw_session *session = raw_open(rig);
    raw_send_connect(session, ASI_CODEC_PROTOCOL_VERSION);
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id);
    CHECK_I64(event->code, ASI_CODEC_OK);
    session->id = event->control_session_id;
    asi_codec_request keep_alive;
    asi_codec_request_init(&keep_alive, ASI_CODEC_KEEP_ALIVE);
    raw_send(session, &keep_alive);
    return session;
}

static inline void raw_close(raw_session *session)
{
    as_publication_close(session->requests);
    as_subscription_close(session->responses);
    as_fragment_assembler_close(session->assembler);
    free(session);
}

/* -- requests by name ------------------------------------------------------------------------------------------------------------ */

static inline asi_codec_request request_of(int32_t template_id, int64_t recording_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, template_id);
    request.recording_id = recording_id;
    return request;
}

static inline asi_codec_request start_of(const char *channel, int32_t stream_id, bool auto_stop)
{
    asi_codec_request request = request_of(ASI_CODEC_START_RECORDING_2, AS_NULL_VALUE);
    request.channel = asi_codec_text(channel);
    request.stream_id = stream_id;
    request.source_location = AS_SOURCE_LOCAL;
    request.auto_stop = auto_stop ? 1 : 0;
    return request;
}

static inline asi_codec_request extend_of(int64_t recording_id, const char *channel, int32_t stream_id, bool auto_stop)
{
    asi_codec_request request = start_of(channel, stream_id, auto_stop);
    request.template_id = ASI_CODEC_EXTEND_RECORDING_2;
    request.recording_id = recording_id;
    return request;
}

static inline asi_codec_request replay_of(
    int64_t recording_id, int64_t position, int64_t length, const char *channel, int32_t stream_id)
{
    asi_codec_request request = request_of(ASI_CODEC_REPLAY, recording_id);
    request.position = position;
    request.length = length;
    request.channel = asi_codec_text(channel);
    request.stream_id = stream_id;
    return request;
}

static inline int64_t raw_position(raw_session *session, int32_t template_id, int64_t recording_id)
{
    asi_codec_request request = request_of(template_id, recording_id);
    const int64_t position = raw_ask_ok(session, &request);
    raw_forget_answer(session);
    return position;
}

/* The signal of that kind; `correlation_id` AS_NULL_VALUE: of any request. */
static inline const asi_codec_event *raw_await_signal(raw_session *session, int32_t signal, int64_t correlation_id)
{
    const asi_codec_event *found = NULL;
    const int64_t until_ns = rig_system_ns() + RIG_TIMEOUT_NS;
    while (NULL == found)
    {
        CHECK(rig_system_ns() < until_ns);
        rig_turn(session->rig);
        raw_poll(session);
        for (int i = 0; i < session->event_count && NULL == found; i++)
        {
            const asi_codec_event *event = &session->events[i];
            if (ASI_CODEC_RECORDING_SIGNAL == event->template_id && event->signal == signal &&
                (AS_NULL_VALUE == correlation_id || event->correlation_id == correlation_id))
            {
                found = event;
            }
        }
    }
    return found;
}

/* -- streams --------------------------------------------------------------------------------------------------------------------- */

static inline void fill_message(uint8_t *message, int64_t length, int64_t index)
{
    for (int64_t j = 0; j < length; j++)
    {
        message[j] = (uint8_t)(index * 31 + j);
    }
}

static inline int64_t publish_one(test_rig *rig, as_publication *publication, int64_t length, int64_t index)
{
    uint8_t message[8192];
    int64_t position;
    CHECK(length <= (int64_t)sizeof(message));
    fill_message(message, length, index);
    UNTIL(rig, (position = as_publication_offer(publication, message, length)) > 0);
    return position;
}

/* `count` messages of one length. */
static inline int64_t publish(test_rig *rig, as_publication *publication, int64_t length, int64_t count)
{
    int64_t position = as_publication_position(publication);
    for (int64_t i = 0; i < count; i++)
    {
        position = publish_one(rig, publication, length, i);
    }
    return position;
}

typedef struct raw_recording
{
    int64_t id;
    int64_t subscription_id;
    int64_t correlation_id; /* of the start request */
    int32_t stream_id;
    as_publication *publication;
} raw_recording;

static inline raw_recording raw_start(raw_session *session, int32_t stream_id, bool auto_stop)
{
    raw_recording made = { .stream_id = stream_id };
    asi_codec_request request = start_of(RIG_CHANNEL, stream_id, auto_stop);
    made.subscription_id = raw_ask_ok(session, &request);
    made.correlation_id = request.correlation_id;
    CHECK_I64(as_client_add_exclusive_publication(session->rig->client, RIG_CHANNEL, stream_id, &made.publication), AS_OK);
    made.id = raw_await_signal(session, AS_SIGNAL_START, made.correlation_id)->recording_id;
    return made;
}

/* Recorded up to `position`, then stopped by the end of its publication. */
static inline void raw_finish(raw_session *session, raw_recording *recording, int64_t position)
{
    as_publication_close(recording->publication);
    recording->publication = NULL;
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, recording->correlation_id)->position, position);
}

static inline raw_recording raw_record(raw_session *session, int32_t stream_id, int64_t length, int64_t count)
{
    raw_recording made = raw_start(session, stream_id, true);
    raw_finish(session, &made, publish(session->rig, made.publication, length, count));
    return made;
}

static inline uint8_t *read_segment(const test_rig *rig, int64_t recording_id, int64_t base, int64_t *length)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%" PRId64 "-%" PRId64 ".rec", rig->archive_dir, recording_id, base);
    FILE *file = fopen(path, "rb");
    if (NULL == file)
    {
        return NULL;
    }
    CHECK(0 == fseek(file, 0, SEEK_END));
    *length = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)*length);
    CHECK(NULL != bytes && (size_t)*length == fread(bytes, 1, (size_t)*length, file));
    fclose(file);
    return bytes;
}

#endif
