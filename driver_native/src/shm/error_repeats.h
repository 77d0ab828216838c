/* Tells a server's service log, every ten seconds at most, how often errors of its distinct error log have happened by now.
 *
 * An error's first line is printed when it is recorded (asi_console_on_error). One thread: that which runs the server. */
#ifndef ASI_SHM_ERROR_REPEATS_H
#define ASI_SHM_ERROR_REPEATS_H

#include "base/console.h"

#define ASI_ERROR_REPEATS_INTERVAL_NS 10000000000LL
#define ASI_ERROR_REPEATS_CAPACITY 256 /* of the log's first entries; later ones are told once */

typedef struct asi_error_repeats
{
    asi_console *console; /* borrowed; NULL: nothing is printed */
    const void *section;  /* borrowed: the error log, which only grows */
    int64_t length;
    int64_t next_ns;
    int64_t index;        /* of the entry that is read */
    int32_t told[ASI_ERROR_REPEATS_CAPACITY]; /* counts that were printed; 0: none, as if once */
} asi_error_repeats;

void asi_error_repeats_init(asi_error_repeats *repeats, asi_console *console, const void *section, int64_t length);
/* Reads the log if it is time to. */
void asi_error_repeats_poll(asi_error_repeats *repeats, int64_t now_ns);

#endif
