/* archive-mark.dat: says which archive owns a folder, that it lives, and what went wrong in it. Spec: 06 §10, 01 §10.
 *
 * Format: 0 message header (u16 blockLength 128, templateId 200, schemaId 100, version 2), 8 i32 version (stored last, 0 until
 * ready), 16 i64 activityTimestamp, 24 i64 startTimestamp, 32 i64 pid, 40 i32 controlStreamId, 44 i32 localControlStreamId,
 * 48 i32 eventsStreamId, 52 i32 headerLength 8192, 56 i32 errorBufferLength, 64 i64 archiveId, 136 controlChannel,
 * localControlChannel, eventsChannel, aeronDirectory (u32 length + ASCII each); error log from 8192.
 * The activity timestamp is the lock: an owner younger than 10 s refuses another; taking over is a compare-and-set to
 * INT64_MAX. -1 is an orderly end. Thread rule: one owner; the error log section has its own writer with a mutex. */
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

/* Fields of the block that others than the owner write: the tools. */
#define ASI_MARK_BLOCK_VERSION 0
#define ASI_MARK_BLOCK_ACTIVITY 8

typedef struct asi_mark asi_mark;

typedef struct asi_mark_params
{
    const char *archive_dir;
    const char *mark_dir;         /* NULL or equal: archive_dir; else the link file is written */
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

/* Claims the folder: creates the file or takes over a dead one (its error log is saved to archive-<time>-error.log beside it).
 * The file is not ready for readers until asi_mark_ready. AS_E_USAGE "active mark file detected: <file>": another archive owns
 * it; AS_E_DATA: another major version. */
as_result asi_mark_open(const asi_mark_params *params, const asi_clock *clock, asi_mark **mark) AS_MUST_USE;
/* Stores archive id and activity, then the version with release. */
void asi_mark_ready(asi_mark *mark, int64_t archive_id, int64_t now_ms);
/* At least each ASI_MARK_UPDATE_INTERVAL_MS. */
void asi_mark_heartbeat(asi_mark *mark, int64_t now_ms);
/* What was found when it was claimed: an archive that ended in order, and the start time of one that became ready (-1: none). */
bool asi_mark_is_after_crash(const asi_mark *mark);
int64_t asi_mark_last_start_ms(const asi_mark *mark);
int64_t asi_mark_start_ms(const asi_mark *mark); /* of this archive */
/* Section for an asi_error_log; borrowed until close. */
uint8_t *asi_mark_error_buffer(asi_mark *mark, int64_t *length);
/* Activity -1: orderly end. Harmless on NULL. */
void asi_mark_close(asi_mark *mark);
/* No orderly end: the next start puts right what was left half done. Nobody has to wait for it to be dead. Harmless on NULL. */
void asi_mark_abandon(asi_mark *mark);
/* Of a start that failed nothing stays: the file is as it was found, so that the next one judges what this one did, and a new one is
 * deleted. Harmless on NULL. */
void asi_mark_withdraw(asi_mark *mark);

typedef struct asi_mark_info
{
    int32_t version;               /* 0: not ready */
    int64_t activity_timestamp_ms; /* -1 after an orderly end */
    int64_t start_timestamp_ms;
    int64_t pid;
    int64_t archive_id;            /* -1: none */
    int32_t control_stream_id;
    int32_t local_control_stream_id;
    int32_t events_stream_id;
    int32_t header_length;
    int32_t error_buffer_length;
    int64_t block_offset;          /* of the fields in the file: 8, or 0 in files of before the message header */
    char path[AS_PATH_MAX];
    char control_channel[ASI_MARK_TEXT_CAPACITY];
    char local_control_channel[ASI_MARK_TEXT_CAPACITY];
    char events_channel[ASI_MARK_TEXT_CAPACITY];
    char aeron_dir[ASI_MARK_TEXT_CAPACITY];
} asi_mark_info;

/* Reads the folder's mark file, following the link file; never writes. AS_AGAIN: there is none. AS_E_DATA: another major
 * version, or texts past the header. */
as_result asi_mark_read_untrusted(const char *archive_dir, asi_mark_info *info) AS_MUST_USE;
/* The same of a mark file of any major version: for the tool that migrates. */
as_result asi_mark_read_any_untrusted(const char *archive_dir, asi_mark_info *info) AS_MUST_USE;
bool asi_mark_is_live(const asi_mark_info *info, int64_t now_ms);

#endif
