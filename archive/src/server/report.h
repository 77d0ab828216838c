/* What the archive's conductor reports: entries of the error log in the mark file. The bottom of the server: every other file may call it.
 * Thread rule: the conductor's. */
#ifndef ASI_SERVER_REPORT_H
#define ASI_SERVER_REPORT_H

#include "aeron_spark/as_archive.h"

/* Records a failure in the archive's error log, as "ERROR - <text>"; as_error_text() if `text` is NULL. */
void asi_archive_log(as_archive *archive, int32_t code, const char *text);
/* As "WARN - <text>": what a client did wrong, or what the archive goes on without. Such entries fill half of the log at most. */
void asi_archive_warn(as_archive *archive, int32_t code, const char *text);
/* What anybody who reaches the control channel can cause, with numbers or names of his choice in `text`: a quarter of the log holds such
 * texts, then `kind` stands for them. `severity`: "ERROR" or "WARN". */
void asi_archive_log_of_peer(as_archive *archive, const char *severity, int32_t code, const char *text, const char *kind);

#endif
