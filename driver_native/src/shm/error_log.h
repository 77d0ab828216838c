/* Distinct error log: each different error is stored once, with a count and first and last time. Spec: 01 §8.
 *
 * One writer object per section (the driver, or the archive for its mark file). Any thread of that process may use it; it has
 * its own mutex. Tools of any process read the section. */
#ifndef ASI_SHM_ERROR_LOG_H
#define ASI_SHM_ERROR_LOG_H

#include <pthread.h>

#include "base/result.h"

/* Handler for errors that are logged for the first time. It is called after the error is in the log, outside the log's mutex;
 * when the log is full, with one error a second that did not fit. */
typedef struct asi_error_sink
{
    as_on_logged_error on_error; /* NULL: no handler */
    void *context;
} asi_error_sink;

typedef struct asi_error_observation
{
    int32_t code;
    int64_t offset;      /* of the record in the section */
    int64_t text_length; /* kept here, because any process may overwrite the section's own length */
} asi_error_observation;

typedef struct asi_error_log
{
    uint8_t *buffer;       /* borrowed, zero at first */
    int64_t length;
    int64_t next_offset;
    int64_t *error_counter; /* borrowed, may be NULL; +1 per recorded error */
    asi_error_observation *observations; /* owned */
    int64_t observation_count;
    int64_t observation_capacity;
    bool is_full_told;
    int64_t next_told_ms; /* when the sink may get the next error that did not fit */
    asi_error_sink sink; /* set before the first error */
    pthread_mutex_t mutex;
} asi_error_log;

void asi_error_log_init(asi_error_log *log, void *section, int64_t length, int64_t *error_counter);
void asi_error_log_close(asi_error_log *log);
/* Errors are the same if their codes are equal and the new text starts with the stored one. Prints to stderr once when the
   section is full. */
void asi_error_log_record(asi_error_log *log, int32_t code, const char *text, int64_t now_ms);
/* As asi_error_log_record, for errors that peers can cause at will. Their texts may use the first half of the section, so
 * that space remains for the driver's own errors. An error that is not recorded is still counted. A text with numbers that
 * the peer chooses can differ each time; it needs a `kind` without such numbers (else NULL). Such texts may use the first
 * quarter; after that, `kind` is recorded in their place, in the whole section, since kinds and their codes are few. */
void asi_error_log_record_of_peer(asi_error_log *log, int32_t code, const char *text, const char *kind, int64_t now_ms);

typedef struct asi_error_entry
{
    int32_t count;
    int64_t first_ms;
    int64_t last_ms;
    const char *text; /* borrowed, not terminated */
    int64_t text_length;
} asi_error_entry;

/* Calls the handler for each entry last observed at or after `since_ms`; returns their number. Checks every length. */
int64_t asi_error_log_read_untrusted(const void *section, int64_t length, int64_t since_ms,
    void (*on_entry)(const asi_error_entry *entry, void *context), void *context);

#endif
