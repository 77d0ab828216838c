/* Reports of the archive's conductor: entries of the error log in the mark file. The lowest layer of the server: every other
 * file may call it. Thread rule: conductor only. */
#ifndef ASI_SERVER_REPORT_H
#define ASI_SERVER_REPORT_H

#include "aeron_spark/as_archive.h"

/* Records a failure in the archive's error log, as "ERROR - <text>"; uses as_error_text() if `text` is NULL. */
void asi_archive_log(as_archive *archive, int32_t code, const char *text);
/* Records "WARN - <text>": a client's mistake, or a feature that the archive continues without. Such entries fill at most half
 * of the log. */
void asi_archive_warn(as_archive *archive, int32_t code, const char *text);
/* Records events that any host with access to the control channel can cause, and whose `text` contains numbers or names that it
 * chooses. Such texts fill at most a quarter of the log; after that, `kind` replaces them. `severity`: "ERROR" or "WARN". */
void asi_archive_log_of_peer(as_archive *archive, const char *severity, int32_t code, const char *text, const char *kind);

#endif
