/* Whose directories and files a process relies on: its own, root's, and a named user's; not those that strangers may write.
 *
 * A directory in /dev/shm or /tmp has a name that anybody can take first. What is used there is opened once, looked at by its
 * descriptor, and named relative to it from then on. Symbolic links are not followed. Thread rule: any. */
#ifndef ASI_BASE_TRUST_H
#define ASI_BASE_TRUST_H

#include <sys/stat.h>

#include "base/result.h"

#define ASI_TRUST_OWNER "aeron.spark.dir.owner"
#define ASI_TRUST_WRITERS "aeron.spark.dir.writers"

typedef enum asi_trust_writers /* who may be able to write what is used */
{
    ASI_WRITERS_OWNER,
    ASI_WRITERS_GROUP, /* the default: an umask of 002 is what some systems give everybody, with a group of his own */
    ASI_WRITERS_ALL
} asi_trust_writers;

typedef struct asi_trust
{
    int64_t owner; /* user id beside one's own and root's; -1: none */
    asi_trust_writers writers;
} asi_trust;

/* The two settings as texts: a user's name or number, and owner, group or all. NULL or empty: the environment's
 * (AERON_SPARK_DIR_OWNER, AERON_SPARK_DIR_WRITERS), else none and group. AS_E_USAGE names the setting. */
as_result asi_trust_parse(asi_trust *trust, const char *owner, const char *writers) AS_MUST_USE;
/* AS_E_USAGE with reason and remedy when what was opened as `path` is not to be relied on. Of a directory with the sticky bit its
 * owner alone counts: nobody else can rename or delete what is in it. */
as_result asi_trust_check(const asi_trust *trust, const struct stat *st, const char *path) AS_MUST_USE;
/* Opens a directory without following a link in its last component, and checks it. `flags` beside O_DIRECTORY: O_RDONLY to list
 * it, O_PATH to open files in it. AS_AGAIN when it does not exist. */
as_result asi_trust_open_dir(const asi_trust *trust, const char *path, int flags, int *fd) AS_MUST_USE;
/* As open(), but a symbolic link in the last component is followed only if it is one's own or root's, as /dev/stdout is. -1 with errno. */
int asi_open_no_strange_link(const char *path, int flags, uint32_t mode);

#endif
