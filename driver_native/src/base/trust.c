/* Checks owners and modes of files; see trust.h. */
#define _GNU_SOURCE
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/idle.h"

#define USER_CAPACITY 64
#define PASSWD_CAPACITY 4096

static const char *given(const char *text, const char *variable)
{
    const char *from_environment = NULL == text || '\0' == text[0] ? getenv(variable) : text;
    return NULL != from_environment && '\0' != from_environment[0] ? from_environment : NULL;
}

static as_result parse_owner(const char *text, int64_t *owner)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char strings[PASSWD_CAPACITY];
    if (0 == getpwnam_r(text, &entry, strings, sizeof(strings), &found) && NULL != found)
    {
        *owner = found->pw_uid;
        return AS_OK;
    }
    if (AS_OK == asi_parse_i64(text, owner) && *owner >= 0 && *owner < UINT32_MAX)
    {
        return AS_OK;
    }
    return asi_fail(AS_E_USAGE, EINVAL, ASI_TRUST_OWNER "=%s is no user of this machine, by name or number", text);
}

static as_result parse_writers(const char *text, asi_trust_writers *writers)
{
    static const char *const NAMES[] = { [ASI_WRITERS_OWNER] = "owner", [ASI_WRITERS_GROUP] = "group", [ASI_WRITERS_ALL] = "all" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        if (0 == strcmp(text, NAMES[i]))
        {
            *writers = (asi_trust_writers)i;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, ASI_TRUST_WRITERS "=%s is none of owner, group, all", text);
}

as_result asi_trust_parse(asi_trust *trust, const char *owner, const char *writers)
{
    asi_trust parsed = { .owner = -1, .writers = ASI_WRITERS_GROUP };
    const char *owner_text = given(owner, "AERON_SPARK_DIR_OWNER");
    const char *writers_text = given(writers, "AERON_SPARK_DIR_WRITERS");
    as_result result = NULL == owner_text ? AS_OK : parse_owner(owner_text, &parsed.owner);
    if (AS_OK == result && NULL != writers_text)
    {
        result = parse_writers(writers_text, &parsed.writers);
    }
    if (AS_OK == result)
    {
        *trust = parsed;
    }
    return result;
}

static void name_user(uid_t uid, char *to)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char strings[PASSWD_CAPACITY];
    if (0 == getpwuid_r(uid, &entry, strings, sizeof(strings), &found) && NULL != found)
    {
        snprintf(to, USER_CAPACITY, "%s", found->pw_name);
    }
    else
    {
        snprintf(to, USER_CAPACITY, "%u", (unsigned)uid);
    }
}

as_result asi_trust_check(const asi_trust *trust, const struct stat *st, const char *path)
{
    char owner[USER_CAPACITY];
    char self[USER_CAPACITY];
    if (st->st_uid != geteuid() && 0 != st->st_uid && (int64_t)st->st_uid != trust->owner)
    {
        name_user(st->st_uid, owner);
        name_user(geteuid(), self);
        return asi_fail(AS_E_USAGE, EPERM, "%s belongs to %s, and this is %s: use a directory of one's own, or, to rely on that user, set "
            ASI_TRUST_OWNER "=%s (AERON_SPARK_DIR_OWNER)", path, owner, self, owner);
    }
    const mode_t strange = ASI_WRITERS_ALL == trust->writers ? 0 : ASI_WRITERS_GROUP == trust->writers ? S_IWOTH : S_IWGRP | S_IWOTH;
    const bool is_guarded = S_ISDIR(st->st_mode) && 0 != (st->st_mode & S_ISVTX);
    if (!is_guarded && 0 != (st->st_mode & strange))
    {
        const bool is_of_all = 0 != (st->st_mode & S_IWOTH);
        return asi_fail(AS_E_USAGE, EPERM, "%s can be written by %s (mode %04o): chmod %s %s, or allow it by " ASI_TRUST_WRITERS
            "=%s (AERON_SPARK_DIR_WRITERS)", path, is_of_all ? "every user of this machine" : "its group",
            (unsigned)(st->st_mode & 07777), is_of_all ? "o-w" : "g-w", path, is_of_all ? "all" : "group");
    }
    return AS_OK;
}

static as_result fail_open(const char *path, int error)
{
    char target[AS_PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length >= 0)
    {
        target[length] = '\0';
        return asi_fail(AS_E_USAGE, ELOOP, "%s is a symbolic link, which is not followed: name what it leads to, %s", path, target);
    }
    asi_fail_errno(AS_E_STORAGE, error, "cannot open directory %s", path);
    return ENOENT == error ? AS_AGAIN : AS_E_STORAGE;
}

as_result asi_trust_open_dir(const asi_trust *trust, const char *path, int flags, int *fd)
{
    char name[AS_PATH_MAX];
    size_t length = strlen(path);
    if (0 == length || length >= sizeof(name))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "directory name has %zu bytes, 1 to %zu are possible", length, sizeof(name) - 1);
    }
    memcpy(name, path, length + 1);
    /* With a trailing slash the kernel would follow a link. */
    while (length > 1 && '/' == name[length - 1])
    {
        name[--length] = '\0';
    }
    const int opened = open(name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
    {
        return fail_open(name, errno);
    }
    struct stat st;
    const as_result result = 0 == fstat(opened, &st) ? asi_trust_check(trust, &st, name) :
        asi_fail_errno(AS_E_STORAGE, errno, "cannot stat %s", name);
    if (AS_OK != result)
    {
        close(opened);
        return result;
    }
    *fd = opened;
    return AS_OK;
}

int asi_open_no_strange_link(const char *path, int flags, uint32_t mode)
{
    struct stat st;
    const bool is_link = 0 == lstat(path, &st) && S_ISLNK(st.st_mode);
    const bool is_followed = is_link && (0 == st.st_uid || geteuid() == st.st_uid);
    return open(path, flags | O_CLOEXEC | (is_followed ? 0 : O_NOFOLLOW), (mode_t)mode);
}
