/* The mark file, archive-mark.dat, names the archive that owns a folder, shows that it is alive, and holds its error log.
 * Spec: 06 §10, 01 §10.
 *
 * Format: 0 message header (u16 blockLength 128, templateId 200, schemaId 100, version 2), 8 i32 version (stored last, 0 until
 * ready), 16 i64 activityTimestamp, 24 i64 startTimestamp, 32 i64 pid, 40 i32 controlStreamId, 44 i32 localControlStreamId,
 * 48 i32 eventsStreamId, 52 i32 headerLength 8192, 56 i32 errorBufferLength, 64 i64 archiveId, 136 controlChannel,
 * localControlChannel, eventsChannel, aeronDirectory (u32 length + ASCII each); error log from 8192.
 * The activity timestamp is the lock. While it is younger than 10 s, no other archive may start. A takeover is a compare-and-set
 * to INT64_MAX. -1 means a clean shutdown. Thread rule: one owner; the error log section has its own writer with a mutex. */
#ifndef ASI_STORE_MARK_H
#define ASI_STORE_MARK_H

#include "base/clock.h"
#include "base/result.h"

#define ASI_MARK_FILE "archive-mark.dat"
#define ASI_MARK_LINK_FILE "archive-mark.lnk"
#define ASI_MARK_HEADER_LENGTH 8192
#define ASI_MARK_LIVENESS_TIMEOUT_MS 10000
#define ASI_MARK_UPDATE_INTERVAL_MS 1000
#define ASI_MARK_MIN_ERROR_BUFFER_LENGTH (1024 * 1024)
#define ASI_MARK_TEXT_CAPACITY 4096

/* Fields of the block that the tools write too. */
#define ASI_MARK_BLOCK_VERSION 0
#define ASI_MARK_BLOCK_ACTIVITY 8

typedef struct asi_mark asi_mark;

typedef struct asi_mark_params
{
    const char *archive_dir;
    const char *mark_dir;         /* NULL or equal to archive_dir: there; else the link file is written */
    int32_t control_stream_id;
    int32_t local_control_stream_id;
    int32_t events_stream_id;
    int32_t error_buffer_length;
    int32_t file_page_size;       /* the driver's */
    int64_t start_timestamp_ms;
    int64_t pid;
    const char *control_channel;  /* NULL: none */
    const char *local_control_channel;
    const char *events_channel;   /* NULL: none */
    const char *aeron_dir;
} asi_mark_params;

/* Claims the folder: creates the file, or takes over the file of a dead archive and saves its error log to
 * archive-<time>-error.log beside it. Readers can't use the file before asi_mark_ready. AS_E_USAGE "active mark file detected:
 * <file>": another archive owns it. AS_E_DATA: another major version. */
as_result asi_mark_open(const asi_mark_params *params, const asi_clock *clock, asi_mark **mark) AS_MUST_USE;
/* Stores archive id and activity, then the version with release. */
void asi_mark_ready(asi_mark *mark, int64_t archive_id, int64_t now_ms);
/* Call at least every ASI_MARK_UPDATE_INTERVAL_MS. */
void asi_mark_heartbeat(asi_mark *mark, int64_t now_ms);
/* State of the file when it was claimed: whether the last archive crashed, and the start time of the last one that became ready
 * (-1: none). */
bool asi_mark_is_after_crash(const asi_mark *mark);
int64_t asi_mark_last_start_ms(const asi_mark *mark);
int64_t asi_mark_start_ms(const asi_mark *mark); /* of this archive */
/* Section for an asi_error_log; borrowed until close. */
uint8_t *asi_mark_error_buffer(asi_mark *mark, int64_t *length);
/* Clean shutdown: sets the activity to -1. Harmless on NULL. */
void asi_mark_close(asi_mark *mark);
/* Unclean shutdown: the next start repairs what was left half done. It need not wait for the liveness timeout. Harmless on
 * NULL. */
void asi_mark_abandon(asi_mark *mark);
/* Undoes the claim of a failed start. Restores an existing file, so that the next start finds the state that this one found;
 * deletes a new file. Harmless on NULL. */
void asi_mark_withdraw(asi_mark *mark);

typedef struct asi_mark_info
{
    int32_t version;               /* 0: not ready */
    int64_t activity_timestamp_ms; /* -1 after a clean shutdown */
    int64_t start_timestamp_ms;
    int64_t pid;
    int64_t archive_id;            /* -1: none */
    int32_t control_stream_id;
    int32_t local_control_stream_id;
    int32_t events_stream_id;
    int32_t header_length;
    int32_t error_buffer_length;
    int64_t block_offset;          /* of the fields in the file: 8, or 0 in old files without message header */
    char path[AS_PATH_MAX];
    char control_channel[ASI_MARK_TEXT_CAPACITY];
    char local_control_channel[ASI_MARK_TEXT_CAPACITY];
    char events_channel[ASI_MARK_TEXT_CAPACITY];
    char aeron_dir[ASI_MARK_TEXT_CAPACITY];
} asi_mark_info;

/* Reads the folder's mark file, following the link file. Never writes. AS_AGAIN: no mark file. AS_E_DATA: another major version,
 * or texts that pass the header. */
as_result asi_mark_read_untrusted(const char *archive_dir, asi_mark_info *info) AS_MUST_USE;
/* The same for a mark file of any major version, for the migration tool. */
as_result asi_mark_read_any_untrusted(const char *archive_dir, asi_mark_info *info) AS_MUST_USE;
bool asi_mark_is_live(const asi_mark_info *info, int64_t now_ms);

#endif
