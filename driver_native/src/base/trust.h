/* Decides which users' directories and files a process trusts: its own, root's, and a named user's, unless untrusted users
 * may write to them.
 *
 * Any user can create a directory in /dev/shm or /tmp before its intended owner does. So a directory is opened once, checked
 * by its descriptor, and used relative to that descriptor from then on. Symbolic links are not followed. Thread rule: any. */
#ifndef ASI_BASE_TRUST_H
#define ASI_BASE_TRUST_H

#include <sys/stat.h>

#include "base/result.h"

#define ASI_TRUST_OWNER "aeron.spark.dir.owner"
#define ASI_TRUST_WRITERS "aeron.spark.dir.writers"

typedef enum asi_trust_writers /* who may have write permission */
{
    ASI_WRITERS_OWNER,
    ASI_WRITERS_GROUP, /* the default: some systems give every user a umask of 002 and a group of their own */
    ASI_WRITERS_ALL
} asi_trust_writers;

typedef struct asi_trust
{
    int64_t owner; /* trusted user id besides one's own and root's; -1: none */
    asi_trust_writers writers;
} asi_trust;

/* Parses the two settings: a user's name or number; and owner, group or all. NULL or empty: the environment's
 * (AERON_SPARK_DIR_OWNER, AERON_SPARK_DIR_WRITERS), else none and group. The text of AS_E_USAGE names the setting. */
as_result asi_trust_parse(asi_trust *trust, const char *owner, const char *writers) AS_MUST_USE;
/* AS_E_USAGE with reason and remedy if the file opened as `path` is not trusted. For a directory with the sticky bit only its
 * owner matters, because nobody else can rename or delete its entries. */
as_result asi_trust_check(const asi_trust *trust, const struct stat *st, const char *path) AS_MUST_USE;
/* Opens a directory without following a link in its last component, and checks it. `flags` besides O_DIRECTORY: O_RDONLY to
 * list it, O_PATH to open files in it. AS_AGAIN if it does not exist. */
as_result asi_trust_open_dir(const asi_trust *trust, const char *path, int flags, int *fd) AS_MUST_USE;
/* As open(), but follows a symbolic link in the last component only if the link belongs to this user or root, as /dev/stdout
   does. -1 with errno. */
int asi_open_no_strange_link(const char *path, int flags, uint32_t mode);

#endif
