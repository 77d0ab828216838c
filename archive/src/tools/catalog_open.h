/* Internals of as_catalog, shared by the tools: catalog_open.c (records, states, mark file), verify.c, rechecksum.c, compact.c,
 * dump.c. Public API and thread rule: aeron_spark/as_archive.h. Spec: 06 §12. */
#ifndef ASI_TOOLS_CATALOG_OPEN_H
#define ASI_TOOLS_CATALOG_OPEN_H

#include "store/catalog.h"
#include "store/checksum.h"
#include "store/mark.h"
#include "store/segment_read.h"
#include "tools/lock.h"

/* Interval at which a long operation reports progress and refreshes its lock. */
#define ASI_TOOL_PROGRESS_BYTES (4 * 1024 * 1024)

struct as_catalog
{
    const asi_file_ops *files;   /* borrowed */
    char dir[AS_PATH_MAX];
    char path[AS_PATH_MAX];      /* of the catalog file */
    uint8_t *bytes;              /* owned: the file up to the end of its records at least */
    int64_t bytes_length;
    int64_t capacity;
    asi_catalog_scan scan;       /* ended */
    asi_catalog_record *records; /* owned; texts and descriptor point into `bytes` */
    char **texts;                /* owned: three terminated texts of each record */
    int64_t count;
    char *damage;                /* owned; NULL: none */
    int fd;                      /* -1: not writable */
    asi_tool_lock lock;
    asi_mark_info mark;          /* read by the last as_catalog_mark */
};

/* AS_E_USAGE: no such index, or `is_writing` and the catalog was opened for reading. */
as_result asi_tool_record(const as_catalog *catalog, int64_t index, bool is_writing, asi_catalog_record **record) AS_MUST_USE;
asi_segment_source asi_tool_source(const as_catalog *catalog, const asi_catalog_record *record);
/* Writes to the file and to `bytes`. */
as_result asi_tool_put(as_catalog *catalog, int64_t offset, const void *from, int64_t length) AS_MUST_USE;
/* Checksum of the `length` bytes after the record's header. */
uint32_t asi_tool_catalog_checksum(const as_catalog *catalog, const asi_catalog_record *record, as_record_checksum checksum);
/* Updates the record's checksum if it has one, and syncs. A checksum of unknown kind is replaced by one of kind `checksum`. */
as_result asi_tool_refresh_checksum(as_catalog *catalog, asi_catalog_record *record, as_record_checksum checksum) AS_MUST_USE;
/* Algorithm of the record's stored checksum; NONE if no algorithm matches. */
as_record_checksum asi_tool_catalog_checksum_kind(const as_catalog *catalog, const asi_catalog_record *record);
/* The checksum that the recording's frames carry, as the folder reader finds it; NONE if its first segment can't be read. */
as_record_checksum asi_tool_frame_checksum(
    const as_catalog *catalog, const asi_catalog_record *record, int64_t limit);

/* Counts the bytes of a long operation and reports progress. */
typedef struct asi_tool_progress
{
    asi_tool_lock *lock;
    as_on_progress on_progress;
    void *context;
    int64_t done;
    int64_t reported;
} asi_tool_progress;

/* False: the caller has requested a stop. */
bool asi_tool_progress_add(asi_tool_progress *progress, int64_t bytes);

#endif
