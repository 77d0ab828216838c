/* The recording positions among the counters of an archive's driver. The counters stay open between calls: with many live
 * recordings, to open them takes longer than to read one. Whoever begins to read some checks first that the file is the same. */
#ifndef ASI_STORE_POSITION_COUNTERS_H
#define ASI_STORE_POSITION_COUNTERS_H

#include "shm/cnc.h"
#include "shm/counters.h"

typedef struct asi_position_counters /* zeroed: nothing is open */
{
    bool is_open;
    char aeron_dir[AS_PATH_MAX];
    asi_cnc cnc;
    asi_counters counters;
    int32_t last_id; /* the counter found last: recordings that began one after another have consecutive counters */
} asi_position_counters;

/* Closes the counters of a driver whose file is no longer at its place. */
void asi_position_counters_check(asi_position_counters *of);
/* The recorded position of a recording of an archive; archive_id -1: of any. AS_AGAIN: the driver has no such counter. AS_E_PEER
 * and others: the counters in `aeron_dir` cannot be read. */
as_result asi_position_counters_read(asi_position_counters *of, const char *aeron_dir, int64_t recording_id, int64_t archive_id,
    int64_t *position) AS_MUST_USE;
/* Harmless if nothing is open. */
void asi_position_counters_close(asi_position_counters *of);

#endif
