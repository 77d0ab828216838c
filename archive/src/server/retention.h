/* Old segments and recordings go by a policy of the archive's own. See retention.c. */
#ifndef ASI_SERVER_RETENTION_H
#define ASI_SERVER_RETENTION_H

#include <pthread.h>

#include "server/archive.h"
#include "store/retention_scan.h"

typedef struct asi_retention
{
    as_retention_policy policy;
    bool has_policy;
    bool is_scanning;                    /* on a thread, which owns what follows until has_scanned */
    bool has_thread;
    pthread_t thread;
    bool has_scanned;                    /* released by the thread; a stale read costs one more cycle */
    asi_retention_scan scan;
    as_result result;
    int32_t failure_code;
    char failure[1024];
    int64_t next_ms;                     /* of the next round */
    int64_t at;                          /* recording of the scan that is applied next; its count: the round is done */
} asi_retention;

void asi_retention_init(as_archive *archive);
int asi_retention_step(as_archive *archive);
void asi_retention_close(as_archive *archive);

#endif
