/* The calls on the disk, and where they fail; see sim_disk.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_disk_state.h"
#include "sim_trace.h"

#define FIRST_DESCRIPTOR 100000 /* so that no other descriptor is taken for one of these */

const char *sim_disk_fault_name(sim_disk_fault fault)
{
    static const char *const names[] = { "killed", "torn write", "power cut", "lost sector", "lost length", "lost name",
        "no space", "I/O error", "short", "failed sync" };
    return names[fault];
}

/* The name inside the folder. */
static const char *name_of(const sim_disk *disk, const char *path)
{
    const size_t length = strlen(disk->folder);
    if (0 != strncmp(path, disk->folder, length) || '/' != path[length] || strlen(path + length + 1) >= SIM_DISK_NAME)
    {
        sim_fail("outside", "the archive touches %s, which is not in its folder", path);
    }
    return path + length + 1;
}

/* -- faults --------------------------------------------------------------------------------------------------------------- */

static bool falls(sim_disk *disk, int32_t chance) { return chance > 0 && sim_disk_below(disk, 10000) < chance; }

static int fail(sim_disk *disk, sim_disk_fault fault, const char *doing, const char *what, int error)
{
    sim_trace("disk: %s at %s %s", sim_disk_fault_name(fault), doing, what);
    disk->injected[fault]++;
    disk->errors++;
    return -error;
}

/* True when the process dies inside this call; the caller completes the part done until then and calls die. */
static bool is_last_call(sim_disk *disk, bool is_on_catalog)
{
    return (is_on_catalog || !disk->only_catalog_kills) && disk->calls_to_kill > 0 && 0 == --disk->calls_to_kill;
}

static void die(sim_disk *disk, const char *doing)
{
    sim_trace("disk: killed inside %s", doing);
    disk->injected[SIM_DISK_KILLED]++;
    disk->calls_to_kill = -1;
    disk->only_catalog_kills = false;
    longjmp(*disk->on_kill, 1);
}

/* Kill before or behind a call that is done at once; `fd` -1: on a name. */
static void may_die(sim_disk *disk, const char *doing, int fd)
{
    if (is_last_call(disk, fd >= 0 && disk->is_catalog[fd - FIRST_DESCRIPTOR]))
    {
        die(disk, doing);
    }
}

static bool takes_page(sim_disk *disk, sim_page *page)
{
    if (page->is_used)
    {
        return true;
    }
    if (disk->used_pages >= disk->capacity_pages)
    {
        return false;
    }
    page->is_used = true;
    disk->used_pages++;
    return true;
}

/* -- file_ops ------------------------------------------------------------------------------------------------------------- */

static sim_file *file_of(const sim_disk *disk, int fd)
{
    const int index = fd - FIRST_DESCRIPTOR;
    if (index < 0 || index >= SIM_DISK_MAX_OPEN || NULL == disk->open[index])
    {
        sim_fail("descriptor", "the archive uses descriptor %d, which is not open", fd);
    }
    return disk->open[index];
}

static int fail_descriptor(sim_disk *disk, sim_disk_fault fault, const char *doing, int fd, int error)
{
    disk->catalog_errors += disk->is_catalog[fd - FIRST_DESCRIPTOR] ? 1 : 0;
    return fail(disk, fault, doing, disk->is_catalog[fd - FIRST_DESCRIPTOR] ? "the catalog" : "a segment", error);
}

static int disk_open(void *context, const char *path, asi_file_mode mode)
{
    sim_disk *disk = context;
    const char *file_name = name_of(disk, path);
    const sim_entry *entry = sim_disk_find_entry(&disk->now, file_name);
    sim_file *file = NULL == entry ? NULL : entry->file;
    if (ASI_FILE_CREATE_NEW == mode && NULL != file)
    {
        return -EEXIST;
    }
    if (NULL == file && ASI_FILE_CREATE != mode && ASI_FILE_CREATE_NEW != mode)
    {
        return -ENOENT;
    }
    if (NULL == file)
    {
        may_die(disk, "create", -1);
        if (falls(disk, disk->chances.io_error))
        {
            return fail(disk, SIM_DISK_IO_ERROR, "create", file_name, EIO);
        }
        if (disk->used_pages >= disk->capacity_pages && sim_disk_below(disk, 2) > 0)
        {
            return fail(disk, SIM_DISK_NO_SPACE, "create", file_name, ENOSPC);
        }
        file = sim_disk_make_file(disk);
        sim_disk_change_names(disk, "", file_name, file);
    }
    for (int32_t i = 0; i < SIM_DISK_MAX_OPEN; i++)
    {
        if (NULL == disk->open[i])
        {
            disk->open[i] = file;
            disk->is_catalog[i] = 0 == strncmp(file_name, "archive.catalog", 15);
            return FIRST_DESCRIPTOR + i;
        }
    }
    sim_fail("leak", "the archive has %d files open", SIM_DISK_MAX_OPEN);
}

static int disk_close(void *context, int fd)
{
    sim_disk *disk = context;
    (void)file_of(disk, fd);
    disk->open[fd - FIRST_DESCRIPTOR] = NULL;
    return 0;
}

static int64_t disk_size(void *context, int fd) { return file_of(context, fd)->size; }

static int64_t disk_pread(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    sim_disk *disk = context;
    const sim_file *file = file_of(disk, fd);
    int64_t count = file->size - offset < length ? file->size - offset : length;
    count = count < 0 ? 0 : count;
    if (falls(disk, disk->chances.read_error))
    {
        return fail_descriptor(disk, SIM_DISK_IO_ERROR, "read", fd, EIO);
    }
    if (count > 1 && falls(disk, disk->chances.is_short))
    {
        disk->injected[SIM_DISK_SHORT]++;
        count = 1 + sim_disk_below(disk, count - 1);
    }
    sim_disk_read_pages(file, to, count, offset);
    return count;
}

/* One page's part of a write; false when there is no space for it. */
static bool write_page(sim_disk *disk, sim_file *file, const uint8_t *from, int64_t length, int64_t offset)
{
    sim_page *page = sim_disk_make_page(file, offset / SIM_DISK_PAGE);
    if (!takes_page(disk, page))
    {
        return false;
    }
    const int64_t in_page = offset % SIM_DISK_PAGE;
    memcpy(page->now + in_page, from, (size_t)length);
    for (int64_t i = in_page / SIM_DISK_SECTOR; i <= (in_page + length - 1) / SIM_DISK_SECTOR; i++)
    {
        page->dirty |= (uint8_t)(1 << i);
    }
    file->size = offset + length > file->size ? offset + length : file->size;
    disk->written_bytes += length;
    return true;
}

static int64_t disk_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    sim_disk *disk = context;
    sim_file *file = file_of(disk, fd);
    const bool is_last = is_last_call(disk, disk->is_catalog[fd - FIRST_DESCRIPTOR]);
    if (!is_last && falls(disk, disk->chances.io_error))
    {
        return fail_descriptor(disk, SIM_DISK_IO_ERROR, "write to", fd, EIO);
    }
    int64_t wanted = length;
    const int64_t in_first_page = SIM_DISK_PAGE - offset % SIM_DISK_PAGE;
    if (length > in_first_page && falls(disk, disk->chances.is_short))
    {
        disk->injected[SIM_DISK_SHORT]++;
        wanted = in_first_page +
            sim_disk_below(disk, (length - in_first_page + SIM_DISK_PAGE - 1) / SIM_DISK_PAGE) * SIM_DISK_PAGE;
    }
    const int64_t pages = (offset + wanted - 1) / SIM_DISK_PAGE - offset / SIM_DISK_PAGE + 1;
    const int64_t pages_done = is_last ? sim_disk_below(disk, pages + 1) : pages;
    int64_t done = 0;
    for (int64_t i = 0; i < pages_done; i++)
    {
        const int64_t left_in_page = SIM_DISK_PAGE - (offset + done) % SIM_DISK_PAGE;
        const int64_t count = left_in_page < wanted - done ? left_in_page : wanted - done;
        if (!write_page(disk, file, (const uint8_t *)from + done, count, offset + done))
        {
            const int error = fail_descriptor(disk, SIM_DISK_NO_SPACE, "write to", fd, ENOSPC);
            return done > 0 ? done : error;
        }
        done += count;
    }
    if (is_last)
    {
        disk->injected[SIM_DISK_TORN_WRITE] += done > 0 && done < length ? 1 : 0;
        die(disk, "write");
    }
    return done;
}

static int disk_ftruncate(void *context, int fd, int64_t length)
{
    sim_disk *disk = context;
    sim_file *file = file_of(disk, fd);
    may_die(disk, "truncate", fd);
    if (falls(disk, disk->chances.io_error))
    {
        return fail_descriptor(disk, SIM_DISK_IO_ERROR, "truncate of", fd, EIO);
    }
    for (int64_t i = length / SIM_DISK_PAGE; length < file->size && i < file->page_capacity; i++)
    {
        sim_page *page = file->pages[i];
        const int64_t keep = i == length / SIM_DISK_PAGE ? length % SIM_DISK_PAGE : 0;
        if (NULL == page)
        {
            continue;
        }
        memset(page->now + keep, 0, (size_t)(SIM_DISK_PAGE - keep));
        page->dirty = SIM_DISK_ALL_SECTORS;
        if (0 == keep && page->is_used)
        {
            page->is_used = false;
            disk->used_pages--;
        }
    }
    file->size = length;
    return 0;
}

static int disk_punch(void *context, int fd, int64_t offset, int64_t length)
{
    sim_disk *disk = context;
    sim_file *file = file_of(disk, fd);
    may_die(disk, "punch", fd);
    if (falls(disk, disk->chances.io_error))
    {
        return fail_descriptor(disk, SIM_DISK_IO_ERROR, "punch of", fd, EIO);
    }
    for (int64_t at = offset; at < offset + length;)
    {
        const int64_t in_page = at % SIM_DISK_PAGE;
        const int64_t left = offset + length - at;
        const int64_t count = SIM_DISK_PAGE - in_page < left ? SIM_DISK_PAGE - in_page : left;
        sim_page *page = sim_disk_page_at(file, at / SIM_DISK_PAGE);
        if (NULL != page)
        {
            memset(page->now + in_page, 0, (size_t)count);
            page->dirty = SIM_DISK_ALL_SECTORS;
        }
        if (NULL != page && SIM_DISK_PAGE == count && page->is_used)
        {
            page->is_used = false;
            disk->used_pages--;
        }
        at += count;
    }
    return 0;
}

static int disk_fsync(void *context, int fd)
{
    sim_disk *disk = context;
    sim_file *file = file_of(disk, fd);
    may_die(disk, "sync", fd);
    const bool is_failed = falls(disk, disk->chances.failed_sync);
    for (int64_t i = 0; i < file->page_capacity; i++)
    {
        sim_page *page = file->pages[i];
        if (NULL == page || 0 == page->dirty)
        {
            continue;
        }
        if (is_failed && sim_disk_below(disk, 2) > 0)
        {
            page->dirty = 0; /* lost: the kernel does not try again */
            continue;
        }
        disk->synced_bytes += SIM_DISK_PAGE;
        sim_disk_sync_page(page);
    }
    if (is_failed)
    {
        return fail_descriptor(disk, SIM_DISK_FAILED_SYNC, "sync of", fd, EIO);
    }
    file->disk_size = file->size;
    return 0;
}

static int disk_sync_directory(void *context, const char *path)
{
    sim_disk *disk = context;
    if (0 != strcmp(path, disk->folder))
    {
        sim_fail("outside", "the archive syncs %s, which is not its folder", path);
    }
    may_die(disk, "sync of the folder", -1);
    if (falls(disk, disk->chances.failed_sync))
    {
        return fail(disk, SIM_DISK_FAILED_SYNC, "sync of", "the folder", EIO);
    }
    for (int32_t i = 0; i < disk->pending_count; i++)
    {
        sim_disk_name(&disk->disk, &disk->pending[i]);
    }
    disk->pending_count = 0;
    return 0;
}

/* Its space goes with its last name. */
static void free_space(sim_disk *disk, const sim_file *file)
{
    for (int32_t i = 0; i < disk->now.count; i++)
    {
        if (disk->now.entries[i].file == file)
        {
            return;
        }
    }
    for (int64_t i = 0; i < file->page_capacity; i++)
    {
        if (NULL != file->pages[i] && file->pages[i]->is_used)
        {
            file->pages[i]->is_used = false;
            disk->used_pages--;
        }
    }
}

static int disk_unlink(void *context, const char *path)
{
    sim_disk *disk = context;
    const char *file_name = name_of(disk, path);
    const sim_entry *entry = sim_disk_find_entry(&disk->now, file_name);
    if (NULL == entry)
    {
        return -ENOENT;
    }
    may_die(disk, "unlink", -1);
    if (falls(disk, disk->chances.io_error))
    {
        return fail(disk, SIM_DISK_IO_ERROR, "unlink", file_name, EIO);
    }
    const sim_file *file = entry->file;
    sim_disk_change_names(disk, file_name, "", NULL);
    free_space(disk, file);
    return 0;
}

static int disk_rename(void *context, const char *from, const char *to)
{
    sim_disk *disk = context;
    const char *from_name = name_of(disk, from);
    const char *to_name = name_of(disk, to);
    const sim_entry *entry = sim_disk_find_entry(&disk->now, from_name);
    if (NULL == entry)
    {
        return -ENOENT;
    }
    may_die(disk, "rename", -1);
    if (falls(disk, disk->chances.io_error))
    {
        return fail(disk, SIM_DISK_IO_ERROR, "rename", from_name, EIO);
    }
    const sim_entry *replaced = sim_disk_find_entry(&disk->now, to_name);
    const sim_file *old = NULL == replaced ? NULL : replaced->file;
    sim_disk_change_names(disk, from_name, to_name, entry->file);
    if (NULL != old)
    {
        free_space(disk, old);
    }
    return 0;
}

static int disk_link(void *context, const char *from, const char *to)
{
    sim_disk *disk = context;
    const char *to_name = name_of(disk, to);
    const sim_entry *entry = sim_disk_find_entry(&disk->now, name_of(disk, from));
    if (NULL == entry)
    {
        return -ENOENT;
    }
    if (NULL != sim_disk_find_entry(&disk->now, to_name))
    {
        return -EEXIST;
    }
    may_die(disk, "link", -1);
    if (falls(disk, disk->chances.io_error))
    {
        return fail(disk, SIM_DISK_IO_ERROR, "link", to_name, EIO);
    }
    sim_disk_change_names(disk, "", to_name, entry->file);
    return 0;
}

static int64_t disk_names(void *context, int fd)
{
    const sim_disk *disk = context;
    int64_t names = 0;
    for (int32_t i = 0; i < disk->now.count; i++)
    {
        names += disk->now.entries[i].file == disk->open[fd - FIRST_DESCRIPTOR];
    }
    return names;
}

static int disk_readdir(void *context, const char *path, bool (*on_name)(void *name_context, const char *name), void *name_context)
{
    sim_disk *disk = context;
    if (0 != strcmp(path, disk->folder))
    {
        sim_fail("outside", "the archive lists %s, which is not its folder", path);
    }
    /* Names may be taken away meanwhile. */
    sim_folder *folder = malloc(sizeof(*folder));
    if (NULL == folder)
    {
        return -ENOMEM;
    }
    *folder = disk->now;
    for (int32_t i = 0; i < folder->count && on_name(name_context, folder->entries[i].name); i++)
    {
    }
    free(folder);
    return 0;
}

static int64_t disk_usable_space(void *context, const char *path)
{
    (void)path;
    const sim_disk *disk = context;
    return disk->capacity_pages > disk->used_pages ? (disk->capacity_pages - disk->used_pages) * SIM_DISK_PAGE : 0;
}

asi_file_ops sim_disk_ops(sim_disk *disk)
{
    return (asi_file_ops){ .open = disk_open, .close = disk_close, .size = disk_size, .pread = disk_pread, .pwrite = disk_pwrite,
        .ftruncate = disk_ftruncate, .fsync = disk_fsync, .fdatasync = disk_fsync, .sync_directory = disk_sync_directory,
        .unlink = disk_unlink, .rename = disk_rename, .readdir = disk_readdir, .usable_space = disk_usable_space,
        .punch = disk->can_punch ? disk_punch : NULL, .link = disk->can_link ? disk_link : NULL, .names = disk_names,
        .context = disk };
}
