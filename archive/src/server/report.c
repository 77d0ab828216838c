/* See report.h. */
#include "server/report.h"

#include <stdio.h>

#include "server/archive.h"

#define ENTRY_CAPACITY 8192 /* size of an error log entry: two channels fit */

void asi_archive_log(as_archive *archive, int32_t code, const char *text)
{
    char entry[ENTRY_CAPACITY];
    snprintf(entry, sizeof(entry), "ERROR - %s", NULL == text ? as_error_text() : text);
    asi_error_log_record(&archive->error_log, code, entry, asi_clock_ms(&archive->clock));
}

void asi_archive_log_of_peer(as_archive *archive, const char *severity, int32_t code, const char *text, const char *kind)
{
    char entry[ENTRY_CAPACITY], brief[256];
    snprintf(entry, sizeof(entry), "%s - %s", severity, text);
    snprintf(brief, sizeof(brief), "%s - %s (more of them, not told apart any more)", severity, NULL == kind ? "" : kind);
    asi_error_log_record_of_peer(
        &archive->error_log, code, entry, NULL == kind ? NULL : brief, asi_clock_ms(&archive->clock));
}

void asi_archive_warn(as_archive *archive, int32_t code, const char *text)
{
    asi_archive_log_of_peer(archive, "WARN", code, text, NULL);
}
