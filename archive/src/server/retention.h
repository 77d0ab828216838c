/* Deletes old segments and recordings by the archive's own policy. See retention.c. */
#ifndef ASI_SERVER_RETENTION_H
#define ASI_SERVER_RETENTION_H

#include <pthread.h>

#include "server/archive.h"
#include "store/retention_scan.h"

typedef struct asi_retention
{
    as_retention_policy policy;
    bool has_policy;
    bool is_scanning;                    /* a scan runs; its thread owns the fields below until has_scanned */
    bool has_thread;
    pthread_t thread;
    bool has_scanned;                    /* released by the thread; a stale read costs one more cycle */
    asi_retention_scan scan;
    as_result result;
    int32_t failure_code;
    char failure[1024];
    int64_t next_ms;                     /* time of the next round */
    int64_t at;                          /* index in the scan of the recording to apply next; scan's count: round is done */
} asi_retention;

void asi_retention_init(as_archive *archive);
int asi_retention_step(as_archive *archive);
void asi_retention_close(as_archive *archive);

#endif
