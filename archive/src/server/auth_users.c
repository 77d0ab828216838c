/* See auth_users.h. */
#include "server/auth_users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/request.h"

#define FILE_MAX (1024 * 1024)
#define USERS_MAX 10000

typedef struct action_group
{
    const char *name;
    int32_t template_ids[16]; /* ends with 0 */
} action_group;

static const action_group GROUPS[] = {
    { "query", { ASI_CODEC_LIST_RECORDINGS, ASI_CODEC_LIST_RECORDINGS_FOR_URI, ASI_CODEC_LIST_RECORDING,
        ASI_CODEC_FIND_LAST_MATCHING_RECORDING, ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, ASI_CODEC_START_POSITION,
        ASI_CODEC_RECORDING_POSITION, ASI_CODEC_STOP_POSITION, ASI_CODEC_MAX_RECORDED_POSITION } },
    { "record", { ASI_CODEC_START_RECORDING, ASI_CODEC_START_RECORDING_2, ASI_CODEC_EXTEND_RECORDING,
        ASI_CODEC_EXTEND_RECORDING_2, ASI_CODEC_STOP_RECORDING, ASI_CODEC_STOP_RECORDING_SUBSCRIPTION,
        ASI_CODEC_STOP_RECORDING_BY_IDENTITY } },
    { "replay", { ASI_CODEC_REPLAY, ASI_CODEC_BOUNDED_REPLAY, ASI_CODEC_STOP_REPLAY, ASI_CODEC_STOP_ALL_REPLAYS,
        ASI_CODEC_REPLAY_TOKEN } },
    { "maintain", { ASI_CODEC_TRUNCATE_RECORDING, ASI_CODEC_PURGE_RECORDING, ASI_CODEC_DETACH_SEGMENTS,
        ASI_CODEC_DELETE_DETACHED_SEGMENTS, ASI_CODEC_PURGE_SEGMENTS, ASI_CODEC_ATTACH_SEGMENTS, ASI_CODEC_MIGRATE_SEGMENTS,
        ASI_CODEC_UPDATE_CHANNEL } },
    { "replicate", { ASI_CODEC_REPLICATE, ASI_CODEC_TAGGED_REPLICATE, ASI_CODEC_REPLICATE_2, ASI_CODEC_STOP_REPLICATION } },
};

/* -- texts ------------------------------------------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int64_t asi_auth_parse_hex(const char *text, int64_t length, uint8_t *to, int64_t capacity)
{
    if (0 != length % 2 || length / 2 > capacity)
    {
        return AS_NULL_VALUE;
    }
    for (int64_t i = 0; i < length / 2; i++)
    {
        const int high = digit_of(text[2 * i]);
        const int low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
        {
            return AS_NULL_VALUE;
        }
        to[i] = (uint8_t)(high << 4 | low);
    }
    return length / 2;
}

void asi_auth_format_hex(char *to, const uint8_t *bytes, int64_t length)
{
    static const char DIGITS[] = "0123456789abcdef";
    for (int64_t i = 0; i < length; i++)
    {
        to[2 * i] = DIGITS[bytes[i] >> 4];
        to[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    to[2 * length] = '\0';
}

static bool is_user_name(const char *text)
{
    const size_t length = strlen(text);
    static const char OTHERS[] = "._@-";
    for (size_t i = 0; i < length; i++)
    {
        const char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || NULL != strchr(OTHERS, c)))
        {
            return false;
        }
    }
    return length > 0 && length <= ASI_AUTH_USER_MAX;
}

/* -- a line ------------------------------------------------------------------------------------------------------------------ */

static bool allow_group(asi_auth_user *user, const char *name)
{
    const bool is_all = 0 == strcmp(name, "all");
    for (size_t i = 0; i < sizeof(GROUPS) / sizeof(GROUPS[0]); i++)
    {
        if (!is_all && 0 != strcmp(name, GROUPS[i].name))
        {
            continue;
        }
        for (const int32_t *id = GROUPS[i].template_ids; 0 != *id; id++)
        {
            user->actions[*id] = true;
        }
        if (!is_all)
        {
            return true;
        }
    }
    user->can_stop_any_replay = user->can_stop_any_replay || is_all;
    return is_all;
}

static bool allow_request(asi_auth_user *user, const char *text)
{
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    const bool is_number = 0 == errno && end != text && '\0' == *end;
    for (int32_t id = 1; id < ASI_AUTH_ACTIONS; id++)
    {
        const char *name = asi_codec_request_name(id);
        if (NULL != name && (is_number ? number == id : 0 == strcmp(text, name)))
        {
            user->actions[id] = true;
            return true;
        }
    }
    return false;
}

static as_result parse_actions(asi_auth_user *user, char *text)
{
    char *rest;
    for (char *action = strtok_r(text, ",", &rest); NULL != action; action = strtok_r(NULL, ",", &rest))
    {
        if (0 == strcmp(action, "stop-any-replay"))
        {
            user->can_stop_any_replay = true;
        }
        else if (!allow_group(user, action) && !allow_request(user, action))
        {
            return asi_fail(AS_E_USAGE, 0, "'%.40s' is no action: give all, query, record, replay, maintain, replicate, "
                "stop-any-replay, or a request's name such as StartRecordingRequest2", action);
        }
    }
    user->actions[ASI_CODEC_ARCHIVE_ID] = true;
    user->actions[ASI_CODEC_KEEP_ALIVE] = true;
    return AS_OK;
}

/* Error texts never show the faulty text: it may be a misplaced password. */
static as_result parse_secret(asi_auth_user *user, char *text)
{
    static const char REMEDY[] = "the second field must be scram-sha-256$<iterations>$<salt>$<stored key>, as "
        "`aeron-spark archive user` prints it";
    char *rest;
    char *end = NULL;
    const char *kind = strtok_r(text, "$", &rest);
    const char *iterations = strtok_r(NULL, "$", &rest);
    const char *salt = strtok_r(NULL, "$", &rest);
    const char *key = strtok_r(NULL, "$", &rest);
    if (NULL == kind || 0 != strcmp(kind, "scram-sha-256") || NULL == iterations || NULL == salt || NULL == key ||
        NULL != strtok_r(NULL, "$", &rest))
    {
        return asi_fail(AS_E_USAGE, 0, "%s", REMEDY);
    }
    errno = 0;
    user->iterations = strtoll(iterations, &end, 10);
    if (0 != errno || end == iterations || '\0' != *end || user->iterations < ASI_AUTH_ITERATIONS_MIN ||
        user->iterations > ASI_AUTH_ITERATIONS_MAX)
    {
        return asi_fail(AS_E_USAGE, 0, "iterations must be %d to %d; %s", ASI_AUTH_ITERATIONS_MIN, ASI_AUTH_ITERATIONS_MAX,
            REMEDY);
    }
    user->salt_length = asi_auth_parse_hex(salt, (int64_t)strlen(salt), user->salt, ASI_AUTH_SALT_MAX);
    const int64_t key_length = asi_auth_parse_hex(key, (int64_t)strlen(key), user->stored_key, ASI_SHA256_LENGTH);
    if (user->salt_length < 8 || ASI_SHA256_LENGTH != key_length)
    {
        return asi_fail(AS_E_USAGE, 0, "the salt must be 16 to %d hexadecimal digits, the stored key %d; %s",
            2 * ASI_AUTH_SALT_MAX, 2 * ASI_SHA256_LENGTH, REMEDY);
    }
    return AS_OK;
}

static as_result add_user(asi_auth_users *users, char *line)
{
    static const char BLANKS[] = " \t\r";
    char *rest;
    char *name = strtok_r(line, BLANKS, &rest);
    if (NULL == name || '#' == name[0])
    {
        return AS_OK;
    }
    char *secret = strtok_r(NULL, BLANKS, &rest);
    char *actions = strtok_r(NULL, BLANKS, &rest);
    if (NULL == secret || NULL == actions || NULL != strtok_r(NULL, BLANKS, &rest))
    {
        return asi_fail(AS_E_USAGE, 0, "a user takes three fields: name, secret, actions (with commas and no spaces)");
    }
    if (!is_user_name(name))
    {
        return asi_fail(AS_E_USAGE, 0, "a user's name is 1 to %d letters, digits, '.', '_', '@', '-'", ASI_AUTH_USER_MAX);
    }
    if (NULL != asi_auth_users_find(users, name, (int64_t)strlen(name)))
    {
        return asi_fail(AS_E_USAGE, 0, "user %s stands there twice", name);
    }
    if (USERS_MAX == users->count)
    {
        return asi_fail(AS_E_USAGE, 0, "more than %d users", USERS_MAX);
    }
    asi_auth_user *items = realloc(users->items, (size_t)(users->count + 1) * sizeof(*items));
    if (NULL == items)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for users");
    }
    users->items = items;
    asi_auth_user *user = &items[users->count];
    memset(user, 0, sizeof(*user));
    snprintf(user->name, sizeof(user->name), "%s", name);
    as_result result = parse_secret(user, secret);
    result = AS_OK == result ? parse_actions(user, actions) : result;
    if (AS_OK != result)
    {
        return asi_fail_in(result, "user %s", user->name);
    }
    users->count++;
    return AS_OK;
}

/* -- the file ---------------------------------------------------------------------------------------------------------------- */

static as_result check_access(int fd, const char *path, int64_t *length)
{
    struct stat st;
    if (0 != fstat(fd, &st))
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "can't look at the credentials file %s", path);
    }
    if (!S_ISREG(st.st_mode))
    {
        return asi_fail(AS_E_USAGE, 0, "the credentials file %s is no regular file", path);
    }
    if (0 != st.st_uid && geteuid() != st.st_uid)
    {
        return asi_fail(AS_E_USAGE, 0, "the credentials file %s belongs to another user (uid %u): chown it to the archive's "
            "user", path, (unsigned)st.st_uid);
    }
    if (0 != (st.st_mode & (S_IRWXG | S_IRWXO)))
    {
        return asi_fail(AS_E_USAGE, 0, "the credentials file %s is open to others (mode %04o): chmod 600 %s", path,
            (unsigned)(st.st_mode & 07777), path);
    }
    if (st.st_size > FILE_MAX)
    {
        return asi_fail(AS_E_USAGE, 0, "the credentials file %s has %lld bytes, more than %d", path, (long long)st.st_size,
            FILE_MAX);
    }
    *length = st.st_size;
    return AS_OK;
}

/* Parses the file's text; modifies `text`. */
static as_result parse(asi_auth_users *users, char *text, const char *path)
{
    int number = 1;
    for (char *line = text; NULL != line; number++)
    {
        char *end = strchr(line, '\n');
        if (NULL != end)
        {
            *end = '\0';
        }
        const as_result result = add_user(users, line);
        if (AS_OK != result)
        {
            return asi_fail_in(result, "the credentials file %s, line %d", path, number);
        }
        line = NULL == end ? NULL : end + 1;
    }
    return users->count > 0 ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "the credentials file %s names no user, so nobody could connect", path);
}

static as_result read_text(int fd, const char *path, char *text, int64_t length)
{
    int64_t at = 0;
    while (at < length)
    {
        const ssize_t got = read(fd, text + at, (size_t)(length - at));
        if (got < 0 && EINTR == errno)
        {
            continue;
        }
        if (got <= 0)
        {
            return asi_fail_errno(AS_E_STORAGE, got < 0 ? errno : EIO, "can't read the credentials file %s", path);
        }
        at += got;
    }
    return NULL == memchr(text, '\0', (size_t)length) ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "the credentials file %s is no text: it has a zero byte", path);
}

as_result asi_auth_users_load_untrusted(asi_auth_users *users, const char *path)
{
    *users = (asi_auth_users){ .count = 0 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_USAGE, errno, "aeron.spark.archive.credentials.file: can't open %s", path);
    }
    int64_t length = 0;
    as_result result = check_access(fd, path, &length);
    char *text = AS_OK == result ? calloc(1, (size_t)length + 1) : NULL;
    if (AS_OK == result && NULL == text)
    {
        result = asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the credentials file");
    }
    result = AS_OK == result ? read_text(fd, path, text, length) : result;
    result = AS_OK == result ? parse(users, text, path) : result;
    close(fd);
    if (NULL != text)
    {
        explicit_bzero(text, (size_t)length);
        free(text);
    }
    if (AS_OK != result)
    {
        asi_auth_users_close(users);
    }
    return result;
}

void asi_auth_users_close(asi_auth_users *users)
{
    if (NULL != users->items)
    {
        explicit_bzero(users->items, (size_t)users->count * sizeof(*users->items));
        free(users->items);
    }
    *users = (asi_auth_users){ .count = 0 };
}

const asi_auth_user *asi_auth_users_find(const asi_auth_users *users, const char *name, int64_t length)
{
    for (int64_t i = 0; i < users->count; i++)
    {
        const asi_auth_user *user = &users->items[i];
        if ((int64_t)strlen(user->name) == length && 0 == memcmp(user->name, name, (size_t)length))
        {
            return user;
        }
    }
    return NULL;
}
