/* Warns of low disk space before the disk is full. See low_storage.c. */
#ifndef ASI_SERVER_LOW_STORAGE_H
#define ASI_SERVER_LOW_STORAGE_H

#include "server/archive.h"

typedef struct asi_low_storage
{
    int64_t next_ms;                     /* time of the next check */
    bool warns;                          /* below the warning's bound, and logged */
    bool refuses;                        /* below the threshold, and logged */
} asi_low_storage;

void asi_low_storage_step(as_archive *archive, int64_t now_ms);

#endif
