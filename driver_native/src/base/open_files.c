/* See open_files.h. */
#include "base/open_files.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/resource.h>

void asi_open_files_raise_limit(void)
{
    struct rlimit limit;
    if (0 == getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max)
    {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, the old limit applies */
    }
}

int64_t asi_open_files_limit(void)
{
    struct rlimit limit;
    return 0 == getrlimit(RLIMIT_NOFILE, &limit) && RLIM_INFINITY != limit.rlim_cur ? (int64_t)limit.rlim_cur : INT64_MAX;
}

int64_t asi_open_files_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (NULL == dir)
    {
        return -1;
    }
    int64_t count = -3; /* ".", ".." and the directory itself */
    while (NULL != readdir(dir))
    {
        count++;
    }
    closedir(dir);
    return count;
}
