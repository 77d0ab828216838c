/* Distinct error log: each different error once, with a count and first/last time. Spec: 01 §8.
 *
 * One writer object per section (the driver, or the archive for its mark file), used from any of its threads under its own
 * mutex; read by tools of any process. */
#ifndef ASI_SHM_ERROR_LOG_H
#define ASI_SHM_ERROR_LOG_H

#include <pthread.h>

#include "base/result.h"

/* Who is called for an error that is logged for the first time, after it is in the log and outside the log's mutex. */
typedef struct asi_error_sink
{
    as_on_logged_error on_error; /* NULL: nobody */
    void *context;
} asi_error_sink;

typedef struct asi_error_observation
{
    int32_t code;
    int64_t offset;      /* of the record in the section */
    int64_t text_length; /* kept here: the section's own length may be overwritten by anybody */
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
    asi_error_sink sink; /* set before the first error */
    pthread_mutex_t mutex;
} asi_error_log;

void asi_error_log_init(asi_error_log *log, void *section, int64_t length, int64_t *error_counter);
void asi_error_log_close(asi_error_log *log);
/* Same code and a text that starts with a stored one count as the same error. Prints to stderr when the section is full, once. */
void asi_error_log_record(asi_error_log *log, int32_t code, const char *text, int64_t now_ms);
/* The same, but for errors that others can cause at will: their texts get the first half of the section, so that room is left for
 * the driver's own. What is not recorded is still counted. A text that holds numbers of the other's choice, and so can be made different
 * each time, comes with a `kind` that holds none (else NULL): such texts get the first quarter, and then the kind stands for them. */
void asi_error_log_record_of_peer(asi_error_log *log, int32_t code, const char *text, const char *kind, int64_t now_ms);

typedef struct asi_error_entry
{
    int32_t count;
    int64_t first_ms;
    int64_t last_ms;
    const char *text; /* borrowed, not terminated */
    int64_t text_length;
} asi_error_entry;

/* Calls for each entry last seen at or after `since_ms`; returns the number. Checks every length. */
int64_t asi_error_log_read_untrusted(const void *section, int64_t length, int64_t since_ms,
    void (*on_entry)(const asi_error_entry *entry, void *context), void *context);

#endif
