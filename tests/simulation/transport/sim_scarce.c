/* See sim_scarce.h. */
#include "sim_scarce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGES_AT_ONCE 64

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

sim_scarcity sim_scarce;

/* The linker's names. */
int __real_madvise(void *from, size_t length, int advice);
int __wrap_madvise(void *from, size_t length, int advice);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

static bool is_refused(void) { return sim_scarce.is_full && sim_scarce.is_driver_running; }

/* A full file system refuses new pages; those that are there are there. */
static bool has_storage(void *from, size_t length)
{
    unsigned char pages[PAGES_AT_ONCE];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < length; at += page * PAGES_AT_ONCE)
    {
        const size_t part = length - at < page * PAGES_AT_ONCE ? length - at : page * PAGES_AT_ONCE;
        if (0 != mincore((uint8_t *)from + at, part, pages))
        {
            return false;
        }
        for (size_t i = 0; i < (part + page - 1) / page; i++)
        {
            if (0 == (pages[i] & 1))
            {
                return false;
            }
        }
    }
    return true;
}

int __wrap_madvise(void *from, size_t length, int advice)
{
    if (MADV_POPULATE_WRITE == advice && is_refused() && !has_storage(from, length))
    {
        sim_scarce.refused_pages++;
        errno = EFAULT; /* what Linux says of a full tmpfs */
        return -1;
    }
    return __real_madvise(from, length, advice);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = 0 != (flags & O_CREAT) ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    if (0 != (flags & O_CREAT) && is_refused())
    {
        errno = 0 == sim_scarce.refused_files++ % 2 ? ENOSPC : EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}
