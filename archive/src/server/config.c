/* See config.h. One table row for each setting. Defaults use the same parsers as external values. */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"
#include "base/properties.h"
#include "base/trust.h"
#include "store/checksum.h"
#include "wire/uri.h"

#define SECOND_NS INT64_C(1000000000)

typedef enum setting_kind
{
    KIND_TEXT,       /* char array of `max` bytes, terminator included */
    KIND_BOOL,
    KIND_INTEGER,
    KIND_SIZE,
    KIND_DURATION,
    KIND_PERIOD,     /* a duration with its unit, also in minutes, hours, days and weeks */
    KIND_AGE,        /* a period of a second or more; 0: none */
    KIND_THREADING,
    KIND_NAMING,
    KIND_CHECKSUM,
    KIND_IDLE,
    KIND_IDLE_OPTIONAL, /* `max` is the offset of the flag that is true if it is set */
    KIND_AUTHENTICATOR,
    KIND_AUTHORISATION,
    KIND_LOG_FORMAT,
    KIND_LOG_LEVEL
} setting_kind;

typedef struct setting_row
{
    const char *name;
    const char *fallback;
    setting_kind kind;
    size_t at;
    int64_t min;
    int64_t max;
    bool is_power_of_two;
} setting_row;

#define AT(member) offsetof(as_archive_config, member)
#define TEXT(name, fallback, member) \
    { name, fallback, KIND_TEXT, AT(member), 0, (int64_t)sizeof(((as_archive_config *)0)->member), false }
#define BOOL(name, fallback, member) { name, fallback, KIND_BOOL, AT(member), 0, 0, false }
#define NUMBER(kind, name, fallback, member, min, max) { name, fallback, kind, AT(member), min, max, false }

#define GIB 1073741824LL

static const setting_row SETTINGS[] = {
    TEXT("aeron.dir", "", aeron_dir),
    TEXT(ASI_TRUST_OWNER, "", dir_owner),
    TEXT(ASI_TRUST_WRITERS, "", dir_writers),
    NUMBER(KIND_INTEGER, "aeron.driver.timeout", "10000", driver_timeout_ms, 1, INT32_MAX),
    TEXT("aeron.archive.dir", "aeron-archive", archive_dir),
    TEXT("aeron.archive.mark.file.dir", "", mark_dir),
    BOOL("aeron.archive.dir.delete.on.start", "false", delete_dir_on_start),
    NUMBER(KIND_INTEGER, "aeron.archive.id", "-1", archive_id, INT64_MIN, INT64_MAX),
    { "aeron.archive.threading.mode", "DEDICATED", KIND_THREADING, AT(threading), 0, 0, false },
    { "aeron.thread.naming", "classic", KIND_NAMING, AT(has_new_thread_names), 0, 0, false },
    { "aeron.archive.idle.strategy", "backoff", KIND_IDLE, AT(conductor_idle), 0, 0, false },
    { "aeron.archive.recorder.idle.strategy", "", KIND_IDLE_OPTIONAL, AT(recorder_idle), 0, AT(has_recorder_idle), false },
    { "aeron.archive.replayer.idle.strategy", "", KIND_IDLE_OPTIONAL, AT(replayer_idle), 0, AT(has_replayer_idle), false },
    { "aeron.archive.segment.file.length", "128m", KIND_SIZE, AT(segment_file_length), AS_TERM_MIN_LENGTH, GIB, true },
    NUMBER(KIND_SIZE, "aeron.archive.low.storage.space.threshold", "128m", low_storage_threshold, 0, INT64_MAX),
    NUMBER(KIND_INTEGER, "aeron.archive.file.sync.level", "0", file_sync_level, 0, 2),
    NUMBER(KIND_INTEGER, "aeron.archive.catalog.file.sync.level", "-1", catalog_file_sync_level, -1, 2),
    { "aeron.archive.file.io.max.length", "1m", KIND_SIZE, AT(file_io_max_length), AS_TERM_MIN_LENGTH, GIB, true },
    NUMBER(KIND_SIZE, "aeron.archive.catalog.capacity", "1m", catalog_capacity, 32, INT32_MAX),
    NUMBER(KIND_SIZE, "aeron.spark.archive.catalog.compaction.threshold", "256k", catalog_compaction_threshold, 0, INT32_MAX),
    NUMBER(KIND_SIZE, "aeron.spark.archive.low.storage.warning", "256m", low_storage_warning, 0, INT64_MAX),
    NUMBER(KIND_AGE, "aeron.spark.archive.retain.older.than", "0", retain_older_than_ns, 0, INT64_MAX / 2),
    NUMBER(KIND_SIZE, "aeron.spark.archive.retain.max.bytes", "0", retain_max_bytes, 0, INT64_MAX),
    NUMBER(KIND_INTEGER, "aeron.spark.archive.retain.keep.recordings", "0", retain_keep_recordings, 0, INT32_MAX),
    NUMBER(KIND_PERIOD, "aeron.spark.archive.retain.interval", "1m", retain_interval_ns, 1000000, INT64_MAX / 2),
    NUMBER(KIND_SIZE, "aeron.archive.error.buffer.length", "1m", error_buffer_length, 1024 * 1024, INT32_MAX - 65536),
    NUMBER(KIND_INTEGER, "aeron.archive.max.concurrent.recordings", "20", max_concurrent_recordings, 0, INT32_MAX),
    NUMBER(KIND_INTEGER, "aeron.spark.archive.recordings.unbegun.max", "8", unbegun_recordings_max, 0, INT32_MAX),
    NUMBER(KIND_INTEGER, "aeron.spark.archive.recordings.source.max", "0", source_recordings_max, 0, INT32_MAX),
    NUMBER(KIND_INTEGER, "aeron.archive.max.concurrent.replays", "20", max_concurrent_replays, 0, INT32_MAX),
    NUMBER(KIND_INTEGER, "aeron.spark.archive.max.control.sessions", "1000", max_control_sessions, 1, INT32_MAX),
    NUMBER(KIND_INTEGER, "aeron.spark.archive.undecided.sessions.max", "64", max_undecided_sessions, 1, INT32_MAX),
    BOOL("aeron.spark.archive.control.response.anywhere", "false", response_anywhere),
    { "aeron.spark.archive.control.response.term.length.max", "1m", KIND_SIZE, AT(response_term_length_max), AS_TERM_MIN_LENGTH,
        GIB, true },
    NUMBER(KIND_DURATION, "aeron.archive.connect.timeout", "5s", connect_timeout_ns, 1, INT64_MAX / 2),
    NUMBER(KIND_DURATION, "aeron.archive.session.liveness.check.interval", "1s", session_liveness_check_ns, 1, INT64_MAX / 2),
    NUMBER(KIND_DURATION, "aeron.archive.replay.linger.timeout", "5s", replay_linger_ns, 0, INT64_MAX / 2),
    NUMBER(KIND_DURATION, "aeron.archive.conductor.cycle.threshold", "100ms", conductor_threshold_ns, 1, INT64_MAX / 2),
    NUMBER(KIND_DURATION, "aeron.archive.recorder.cycle.threshold", "100ms", recorder_threshold_ns, 1, INT64_MAX / 2),
    NUMBER(KIND_DURATION, "aeron.archive.replayer.cycle.threshold", "100ms", replayer_threshold_ns, 1, INT64_MAX / 2),
    BOOL("aeron.spark.archive.time.index", "true", time_index),
    NUMBER(KIND_DURATION, "aeron.spark.archive.time.index.interval", "10ms", time_index_interval_ns, 1, INT64_MAX / 2),
    NUMBER(KIND_SIZE, "aeron.spark.archive.time.index.bytes", "64k", time_index_bytes, 1, GIB),
    { "aeron.spark.log.format", "text", KIND_LOG_FORMAT, AT(log_format), 0, 0, false },
    { "aeron.spark.log.level", "info", KIND_LOG_LEVEL, AT(log_level), 0, 0, false },
    NUMBER(KIND_DURATION, "aeron.spark.archive.exit.when.idle", "0", exit_when_idle_ns, 0, INT64_MAX / 2),
    TEXT("aeron.archive.control.channel", "", control_channel),
    NUMBER(KIND_INTEGER, "aeron.archive.control.stream.id", "10", control_stream_id, INT32_MIN, INT32_MAX),
    BOOL("aeron.archive.control.channel.enabled", "true", control_channel_enabled),
    TEXT("aeron.archive.local.control.channel", "aeron:ipc?term-length=64k", local_control_channel),
    NUMBER(KIND_INTEGER, "aeron.archive.local.control.stream.id", "10", local_control_stream_id, INT32_MIN, INT32_MAX),
    TEXT("aeron.archive.replication.channel", "", replication_channel),
    TEXT("aeron.archive.control.response.channel", "", control_response_channel),
    NUMBER(KIND_INTEGER, "aeron.archive.control.response.stream.id", "20", control_response_stream_id, INT32_MIN, INT32_MAX),
    NUMBER(KIND_DURATION, "aeron.archive.message.timeout", "10s", message_timeout_ns, 1, INT64_MAX / 2),
    { "aeron.archive.control.term.buffer.length", "64k", KIND_SIZE, AT(control_term_length), AS_TERM_MIN_LENGTH, GIB, true },
    BOOL("aeron.archive.control.term.buffer.sparse", "true", control_term_sparse),
    NUMBER(KIND_SIZE, "aeron.archive.control.mtu.length", "1408", control_mtu, AS_FRAME_HEADER_LENGTH, AS_MAX_UDP_PAYLOAD_LENGTH),
    BOOL("aeron.archive.recording.events.enabled", "false", events_enabled),
    TEXT("aeron.archive.recording.events.channel", "", events_channel),
    NUMBER(KIND_INTEGER, "aeron.archive.recording.events.stream.id", "30", events_stream_id, INT32_MIN, INT32_MAX),
    { "aeron.archive.record.checksum", "", KIND_CHECKSUM, AT(record_checksum), 0, 0, false },
    { "aeron.archive.replay.checksum", "", KIND_CHECKSUM, AT(replay_checksum), 0, 0, false },
    { "aeron.archive.authenticator.supplier", "", KIND_AUTHENTICATOR, AT(authenticator), 0, 0, false },
    { "aeron.archive.authorisation.service.supplier", "", KIND_AUTHORISATION, AT(authorisation), 0, 0, false },
    TEXT("aeron.spark.archive.credentials.file", "", credentials_file),
    TEXT("aeron.spark.archive.auth.library", "", auth_library),
    TEXT("aeron.spark.archive.auth.symbol", "as_archive_auth_plugin", auth_symbol),
    TEXT("aeron.spark.archive.auth.argument", "", auth_argument),
};
#define SETTING_COUNT (sizeof(SETTINGS) / sizeof(SETTINGS[0]))

/* Makes the environment's name of a property: "aeron.archive.dir" becomes "AERON_ARCHIVE_DIR". */
static void environment_name(char *to, size_t capacity, const char *property)
{
    size_t length = 0;
    for (; '\0' != property[length] && length < capacity - 1; length++)
    {
        to[length] = '.' == property[length] ? '_' : (char)toupper((unsigned char)property[length]);
    }
    to[length] = '\0';
}

static const setting_row *find_setting(const char *name)
{
    char upper[128];
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        environment_name(upper, sizeof(upper), SETTINGS[i].name);
        if (0 == strcmp(name, SETTINGS[i].name) || 0 == strcmp(name, upper))
        {
            return &SETTINGS[i];
        }
    }
    return NULL;
}

static as_result parse_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (0 != errno || end == text || '\0' != *end)
    {
        return asi_fail(AS_E_USAGE, 0, "'%.60s' is no decimal number", text);
    }
    *value = number;
    return AS_OK;
}

/* Parses "90m", "12h", "7d", "4w", or a stock duration with its unit. A number without one is refused: to stock it would be
 * nanoseconds, to who wrote it days or seconds, and what is older is deleted. */
static as_result parse_period_ns(const char *text, int64_t *value)
{
    static const struct { char unit; int64_t seconds; } UNITS[] = { { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++)
    {
        if (0 == errno && end != text && UNITS[i].unit == end[0] && '\0' == end[1])
        {
            const int64_t unit_ns = UNITS[i].seconds * SECOND_NS;
            *value = number > INT64_MAX / unit_ns ? INT64_MAX : number < 0 ? -1 : number * unit_ns;
            return AS_OK;
        }
    }
    int64_t period_ns = 0;
    if (AS_OK != asi_parse_duration_ns(text, &period_ns))
    {
        return asi_fail(AS_E_USAGE, 0, "'%.60s' is no time: write 30s, 90m, 12h, 7d or 4w", text);
    }
    if (0 != period_ns && '\0' == *end)
    {
        return asi_fail(AS_E_USAGE, 0, "'%.60s' is a time without a unit: write 30s, 90m, 12h, 7d or 4w", text);
    }
    *value = period_ns;
    return AS_OK;
}

static as_result set_number(const setting_row *setting, void *member, const char *text)
{
    int64_t value = 0;
    const as_result parsed = KIND_SIZE == setting->kind ? asi_parse_size(text, &value) :
        KIND_AGE == setting->kind || KIND_PERIOD == setting->kind ? parse_period_ns(text, &value) :
        KIND_DURATION == setting->kind ? asi_parse_duration_ns(text, &value) : parse_integer(text, &value);
    if (AS_OK != parsed)
    {
        return parsed;
    }
    if (KIND_AGE == setting->kind && value > 0 && value < SECOND_NS)
    {
        return asi_fail(AS_E_USAGE, 0,
            "'%.60s' is less than a second, so all that has stopped would be deleted: write 30s, 90m, 12h, 7d or 4w", text);
    }
    if (value < setting->min || value > setting->max || (setting->is_power_of_two && !asi_is_power_of_two(value)))
    {
        return asi_fail(AS_E_USAGE, 0, "'%.60s' is out of range: give %s%lld to %lld", text,
            setting->is_power_of_two ? "a power of two from " : "", (long long)setting->min, (long long)setting->max);
    }
    memcpy(member, &value, sizeof(value));
    return AS_OK;
}

static as_result set_choice(void *member, const char *text, const char *const *names, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
    {
        if (0 == strcmp(text, names[i]))
        {
            memcpy(member, &values[i], sizeof(values[i]));
            return AS_OK;
        }
    }
    char choices[256] = "";
    for (int i = 0; i < count; i++)
    {
        const size_t used = strlen(choices);
        snprintf(choices + used, sizeof(choices) - used, "%s%s", 0 == i ? "" : ", ", '\0' == names[i][0] ? "(empty)" : names[i]);
    }
    return asi_fail(AS_E_USAGE, 0, "'%.60s' is not one of: %s", text, choices);
}

static as_result set_naming(void *member, const char *text)
{
    const bool is_new = 0 == strcmp(text, "new");
    if (!is_new && 0 != strcmp(text, "classic"))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' is neither classic nor new", text);
    }
    memcpy(member, &is_new, sizeof(is_new));
    return AS_OK;
}

static const char *const THREADINGS[] = { "DEDICATED", "SHARED", "INVOKER" };

static as_result set_threading(void *member, const char *text)
{
    static const int64_t values[] = { ASI_ARCHIVE_DEDICATED, ASI_ARCHIVE_SHARED, ASI_ARCHIVE_INVOKER };
    return set_choice(member, text, THREADINGS, values, 3);
}

static as_result set_checksum(void *member, const char *text)
{
    as_record_checksum checksum;
    const as_result result = asi_checksum_from_name(text, &checksum);
    if (AS_OK == result)
    {
        const int64_t value = (int64_t)checksum;
        memcpy(member, &value, sizeof(value));
    }
    return result;
}

static as_result set_idle(as_archive_config *config, const setting_row *setting, const char *text)
{
    bool is_set = true;
    if (KIND_IDLE_OPTIONAL == setting->kind)
    {
        is_set = '\0' != *text;
        memcpy((uint8_t *)config + setting->max, &is_set, sizeof(is_set));
    }
    return is_set ? asi_idle_parse((asi_idle *)(void *)((uint8_t *)config + setting->at), text, NULL) : AS_OK;
}

/* Upstream, suppliers are names of Java classes. This accepts the names of the stock archive's own classes. */
static as_result set_supplier(void *member, const char *text, const char *const *names, const int64_t *values, int count)
{
    return AS_OK == set_choice(member, text, names, values, count) ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "'%.100s' is no supplier that can run here: name %s or none. Users, and what they may do, go to "
            "a credentials file (aeron.spark.archive.credentials.file), code of your own to a plug-in "
            "(aeron.spark.archive.auth.library)", text, names[1]);
}

static as_result set_authenticator(void *member, const char *text)
{
    static const char *const names[] = { "", "io.aeron.security.DefaultAuthenticatorSupplier" };
    static const int64_t values[] = { ASI_AUTHENTICATOR_UNSET, ASI_AUTHENTICATOR_DEFAULT };
    return set_supplier(member, text, names, values, 2);
}

static as_result set_authorisation(void *member, const char *text)
{
    static const char *const names[] = { "", "ALLOW_ALL", "DENY_ALL", "AuthorisationService.ALLOW_ALL",
        "AuthorisationService.DENY_ALL", "io.aeron.security.AuthorisationService.ALLOW_ALL",
        "io.aeron.security.AuthorisationService.DENY_ALL" };
    static const int64_t values[] = { ASI_AUTHORISATION_UNSET, ASI_AUTHORISATION_ALLOW_ALL, ASI_AUTHORISATION_DENY_ALL,
        ASI_AUTHORISATION_ALLOW_ALL, ASI_AUTHORISATION_DENY_ALL, ASI_AUTHORISATION_ALLOW_ALL, ASI_AUTHORISATION_DENY_ALL };
    return set_supplier(member, text, names, values, 7);
}

static as_result set_value(as_archive_config *config, const setting_row *setting, const char *text)
{
    uint8_t *member = (uint8_t *)config + setting->at;
    switch (setting->kind)
    {
        case KIND_TEXT:
            if ((int64_t)strlen(text) >= setting->max)
            {
                return asi_fail(AS_E_USAGE, 0, "the value is longer than %lld bytes", (long long)setting->max - 1);
            }
            memcpy(member, text, strlen(text) + 1);
            return AS_OK;
        case KIND_BOOL:
        {
            /* Spec: 05 §1 - a Java boolean property is true when it equals "true", else false. */
            const bool value = 0 == strcmp(text, "true");
            memcpy(member, &value, sizeof(value));
            return AS_OK;
        }
        case KIND_INTEGER:
        case KIND_SIZE:
        case KIND_DURATION:
        case KIND_PERIOD:
        case KIND_AGE:
            return set_number(setting, member, text);
        case KIND_THREADING:
            return set_threading(member, text);
        case KIND_NAMING:
            return set_naming(member, text);
        case KIND_CHECKSUM:
            return set_checksum(member, text);
        case KIND_IDLE:
        case KIND_IDLE_OPTIONAL:
            return set_idle(config, setting, text);
        case KIND_AUTHENTICATOR:
            return set_authenticator(member, text);
        case KIND_AUTHORISATION:
            return set_authorisation(member, text);
        case KIND_LOG_FORMAT:
            return asi_log_format_parse(text, (asi_log_format *)(void *)member);
        case KIND_LOG_LEVEL:
            return asi_log_level_parse(text, (asi_log_level *)(void *)member);
    }
    return AS_OK;
}

as_result as_archive_config_set(as_archive_config *config, const char *name, const char *value)
{
    if (NULL == config || NULL == name || NULL == value)
    {
        return asi_fail(AS_E_USAGE, 0, "as_archive_config_set needs a configuration, a name and a value");
    }
    const setting_row *setting = find_setting(name);
    if (NULL == setting)
    {
        return AS_OK;
    }
    const as_result result = set_value(config, setting, '\0' == *value ? setting->fallback : value);
    /* A text fails only by its length; it may hold a secret, so the error does not show it. */
    return AS_OK == result ? AS_OK : asi_fail_in(result, "setting %s=%.200s", name, KIND_TEXT == setting->kind ? "..." : value);
}

const char *as_archive_config_name(int64_t index)
{
    return index >= 0 && index < (int64_t)SETTING_COUNT ? SETTINGS[index].name : NULL;
}

as_result as_archive_config_open(as_archive_config **config)
{
    as_archive_config *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the archive's configuration");
    }
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        const as_result result = set_value(opened, &SETTINGS[i], SETTINGS[i].fallback);
        if (AS_OK != result)
        {
            free(opened);
            return asi_fail_in(result, "default of %s", SETTINGS[i].name);
        }
    }
    *config = opened;
    return AS_OK;
}

static const char *value_text(const setting_row *setting, const as_archive_config *config, char *to, size_t capacity)
{
    const void *member = (const uint8_t *)config + setting->at;
    switch (setting->kind)
    {
        case KIND_TEXT: return member;
        case KIND_BOOL: return *(const bool *)member ? "true" : "false";
        case KIND_NAMING: return *(const bool *)member ? "new" : "classic";
        case KIND_THREADING: return THREADINGS[*(const int64_t *)member];
        case KIND_LOG_FORMAT: return asi_log_format_text(*(const asi_log_format *)member);
        case KIND_LOG_LEVEL: return asi_log_level_text(*(const asi_log_level *)member);
        case KIND_IDLE:
        case KIND_IDLE_OPTIONAL:
            snprintf(to, capacity, "%d", (int)((const asi_idle *)member)->kind);
            return to;
        default:
            snprintf(to, capacity, "%lld", (long long)*(const int64_t *)member);
            return to;
    }
}

static bool has_short_form(const setting_row *setting)
{
    const bool is_choice = KIND_IDLE == setting->kind || KIND_IDLE_OPTIONAL == setting->kind || KIND_CHECKSUM == setting->kind ||
        KIND_AUTHENTICATOR == setting->kind || KIND_AUTHORISATION == setting->kind;
    return !is_choice && AT(auth_argument) != setting->at;
}

void asi_archive_config_changed(const as_archive_config *config, asi_on_changed_setting on_changed, void *context)
{
    as_archive_config *defaults;
    if (AS_OK != as_archive_config_open(&defaults))
    {
        return;
    }
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        char text[64];
        char usual[64];
        const char *value = value_text(&SETTINGS[i], config, text, sizeof(text));
        if (0 != strcmp(value, value_text(&SETTINGS[i], defaults, usual, sizeof(usual))))
        {
            on_changed(context, SETTINGS[i].name, has_short_form(&SETTINGS[i]) ? value : "...");
        }
    }
    as_archive_config_close(defaults);
}

void as_archive_config_close(as_archive_config *config)
{
    free(config);
}

as_result as_archive_config_load_environment(as_archive_config *config)
{
    char name[128];
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        environment_name(name, sizeof(name), SETTINGS[i].name);
        const char *value = getenv(name);
        if (NULL != value)
        {
            const as_result result = as_archive_config_set(config, name, value);
            if (AS_OK != result)
            {
                return asi_fail_in(result, "environment");
            }
        }
    }
    return AS_OK;
}

static as_result on_property(void *context, const char *name, const char *value)
{
    return as_archive_config_set(context, name, value);
}

as_result as_archive_config_load_properties(as_archive_config *config, const char *path)
{
    return asi_properties_load_untrusted(path, on_property, config);
}

void as_archive_config_on_error(as_archive_config *config, as_on_logged_error on_error, void *context)
{
    config->error_sink = (asi_error_sink){ .on_error = on_error, .context = context };
}

const char *as_archive_config_archive_dir(const as_archive_config *config)
{
    return config->archive_dir;
}

static as_result check_channels(const as_archive_config *config)
{
    asi_uri uri;
    as_result result = asi_uri_parse_untrusted(
        &uri, config->local_control_channel, (int64_t)strlen(config->local_control_channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "aeron.archive.local.control.channel");
    }
    if (ASI_MEDIA_IPC != uri.media || uri.is_spy)
    {
        return asi_fail(AS_E_USAGE, 0, "local control channel must be IPC media: uri=%s", config->local_control_channel);
    }
    if (config->control_channel_enabled && '\0' != config->control_channel[0])
    {
        result = asi_uri_parse_untrusted(&uri, config->control_channel, (int64_t)strlen(config->control_channel));
        if (AS_OK != result)
        {
            return asi_fail_in(result, "aeron.archive.control.channel");
        }
        if (ASI_MEDIA_UDP != uri.media)
        {
            return asi_fail(AS_E_USAGE, 0, "Archive.Context.controlChannel must be UDP media: uri=%s; for IPC alone set "
                "aeron.archive.control.channel.enabled=false and use the local control channel", config->control_channel);
        }
    }
    if (config->events_enabled && '\0' == config->events_channel[0])
    {
        return asi_fail(AS_E_USAGE, 0, "Archive.Context.recordingEventsChannel must be set if "
            "Archive.Context.recordingEventsEnabled is true: set aeron.archive.recording.events.channel");
    }
    return AS_OK;
}

as_result asi_archive_config_check(as_archive_config *config)
{
    if (AS_NULL_VALUE == config->catalog_file_sync_level)
    {
        config->catalog_file_sync_level = config->file_sync_level;
    }
    if (config->catalog_file_sync_level < config->file_sync_level)
    {
        return asi_fail(AS_E_USAGE, 0, "catalogFileSyncLevel %lld < fileSyncLevel %lld: raise "
            "aeron.archive.catalog.file.sync.level or lower aeron.archive.file.sync.level",
            (long long)config->catalog_file_sync_level, (long long)config->file_sync_level);
    }
    if ('\0' == config->archive_dir[0])
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.archive.dir is empty: set the archive's folder");
    }
    if ('\0' == config->aeron_dir[0])
    {
        asi_default_aeron_dir(config->aeron_dir, sizeof(config->aeron_dir));
    }
    config->recorder_idle = config->has_recorder_idle ? config->recorder_idle : config->conductor_idle;
    config->replayer_idle = config->has_replayer_idle ? config->replayer_idle : config->conductor_idle;
    return check_channels(config);
}
