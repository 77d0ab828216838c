/* A disk in memory behind file_ops: one folder of files. Bytes, lengths and names reach the disk independently of each other,
 * and calls fail when the seed decides so. The archive simulation uses it (world.c).
 *
 * The disk keeps two states: `now`, which calls see (the page cache), and `disk`, which a power cut leaves. A sync of a file
 * copies its bytes and length, a sync of the folder its names. The kernel also writes back pages at any time
 * (sim_disk_write_back). Faults, and why the archive must survive each:
 *   killed       The process ends inside any call that changes something (kill -9, out of memory). `now` stays, with the pages
 *                of a write that were copied by then.
 *   power cut    Any part of what was not synced survives: the seed chooses all, none, or each page or each sector of 512
 *                bytes at random. Writes, bytes, lengths and names have no order among each other: file systems journal
 *                differently, and disks reorder. A sector is never torn: devices promise that, and the catalog's fields
 *                of 8 bytes rely on it.
 *   no space     The pages run out in the middle of a write or at the creation of a file. Purges or the run free them again.
 *   I/O error    Any call returns EIO and changes nothing.
 *   short        A read or write handles only a part, as system calls may; a write ends at a page boundary, as in kernels.
 *   failed sync  EIO, after which pages count as clean although some never reached the disk (as on Linux). Only a second write
 *                saves them.
 * A read never returns bytes that nobody wrote: checksums detect decay of data at rest, and other tests cover it.
 *
 * Owns the files. Deterministic: random numbers come from `rand` only. One thread. */
#ifndef AS_SIM_DISK_H
#define AS_SIM_DISK_H

#include <setjmp.h>

#include "base/rand.h"
#include "store/file_ops.h"

#define SIM_DISK_PAGE 4096
#define SIM_DISK_SECTOR 512
#define SIM_DISK_SECTORS (SIM_DISK_PAGE / SIM_DISK_SECTOR)
#define SIM_DISK_NAME 64
#define SIM_DISK_MAX_ENTRIES 2048
#define SIM_DISK_MAX_FILES 4096
#define SIM_DISK_MAX_OPEN 256
#define SIM_DISK_MAX_PENDING 4096

typedef enum sim_disk_fault
{
    SIM_DISK_KILLED,
    SIM_DISK_TORN_WRITE,   /* of a kill: a write that was done in part */
    SIM_DISK_POWER_CUT,
    SIM_DISK_LOST_SECTOR,  /* of a power cut, as the next two */
    SIM_DISK_LOST_LENGTH,
    SIM_DISK_LOST_NAME,
    SIM_DISK_NO_SPACE,
    SIM_DISK_IO_ERROR,
    SIM_DISK_SHORT,
    SIM_DISK_FAILED_SYNC,
    SIM_DISK_FAULT_COUNT
} sim_disk_fault;

/* Chances in 10,000 per call. */
typedef struct sim_disk_chances
{
    int32_t io_error;      /* of calls that change something */
    int32_t read_error;
    int32_t failed_sync;
    int32_t is_short;
} sim_disk_chances;

typedef struct sim_page
{
    uint8_t now[SIM_DISK_PAGE];
    uint8_t disk[SIM_DISK_PAGE];
    uint8_t dirty; /* a bit for each sector that differs in `now`, as far as the kernel knows */
    bool is_used;  /* takes space */
} sim_page;

typedef struct sim_file
{
    sim_page **pages;
    int64_t page_capacity;
    int64_t size;
    int64_t disk_size;
} sim_file;

typedef struct sim_entry
{
    char name[SIM_DISK_NAME];
    sim_file *file;
} sim_entry;

typedef struct sim_folder
{
    sim_entry entries[SIM_DISK_MAX_ENTRIES];
    int32_t count;
} sim_folder;

/* A change of names that is not on the disk yet. */
typedef struct sim_naming
{
    char from[SIM_DISK_NAME]; /* "": created */
    char to[SIM_DISK_NAME];   /* "": unlinked */
    sim_file *file;
} sim_naming;

typedef struct sim_disk
{
    char folder[AS_PATH_MAX];
    asi_rand rand;
    sim_disk_chances chances;
    bool can_punch;         /* as some file systems, */
    bool can_link;          /* and most */
    int64_t capacity_pages;
    int64_t used_pages;
    /* Counts down over calls that change something; at 0 the process is killed inside the call. -1: never. */
    int64_t calls_to_kill;
    bool only_catalog_kills; /* it counts those on the catalog's file */
    jmp_buf *on_kill;       /* where the world continues; set while the archive runs */
    int64_t injected[SIM_DISK_FAULT_COUNT];
    int64_t written_bytes;
    int64_t synced_bytes;
    int64_t errors;         /* calls that were failed, of any kind */
    int64_t catalog_errors; /* those on the catalog */
    /* Its own. */
    sim_folder now;
    sim_folder disk;
    sim_naming pending[SIM_DISK_MAX_PENDING];
    int32_t pending_count;
    sim_file *files[SIM_DISK_MAX_FILES];
    int32_t file_count;
    sim_file *open[SIM_DISK_MAX_OPEN];
    bool is_catalog[SIM_DISK_MAX_OPEN];
} sim_disk;

void sim_disk_init(sim_disk *disk, const char *folder, uint64_t seed, int64_t capacity_bytes);
void sim_disk_close(sim_disk *disk);
asi_file_ops sim_disk_ops(sim_disk *disk);
/* The process has ended: its descriptors are gone. */
void sim_disk_killed(sim_disk *disk);
/* After sim_disk_killed: only what reached the disk is left. */
void sim_disk_cut_power(sim_disk *disk);
/* Some pages, and the first of the pending names, reach the disk by themselves. */
void sim_disk_write_back(sim_disk *disk);
const char *sim_disk_fault_name(sim_disk_fault fault);

/* For the auditor, outside of all counting and faults. -1: no such file. */
int64_t sim_disk_size_of(const sim_disk *disk, const char *name);
/* As if written and durable long ago; inside the file, which is there. */
void sim_disk_leave(sim_disk *disk, const char *name, const void *from, int64_t length, int64_t offset);
/* Zeros where nothing was written or the file ends. */
void sim_disk_read(const sim_disk *disk, const char *name, void *to, int64_t length, int64_t offset);

#endif
