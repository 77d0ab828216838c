/* Resolves host names by a table in the settings (csv_table). Each name has a first host, a second host for re-resolution, and a
 * counter by which tests choose between them or make the name fail. Spec: 05 §9. Called by names.c. Thread rule: the
 * conductor's. */
#ifndef ASI_DRIVER_CTL_HOST_TABLE_H
#define ASI_DRIVER_CTL_HOST_TABLE_H

#include "driver/net/address.h"
#include "shm/counters.h"

#define ASI_HOST_TABLE_COUNTER_TYPE 2001

struct asi_conductor;

enum /* values of a row's counter; any other: the name fails */
{
    ASI_HOST_INITIAL = 0,
    ASI_HOST_RE_RESOLVED = 1
};

typedef struct asi_host_row
{
    const char *name;
    const char *initial_host;
    const char *re_resolution_host;
    int32_t counter_id;
} asi_host_row;

typedef struct asi_host_table
{
    char *text;         /* owned; the rows point into it */
    asi_host_row *rows; /* owned */
    int32_t count;
} asi_host_table;

typedef enum asi_host_outcome
{
    ASI_HOST_UNKNOWN,
    ASI_HOST_FOUND,
    ASI_HOST_FAILED
} asi_host_outcome;

/* "name,initialHost,reResolutionHost|..." */
as_result asi_host_table_open(asi_host_table *table, struct asi_conductor *conductor, const char *args) AS_MUST_USE;
void asi_host_table_close(asi_host_table *table, struct asi_conductor *conductor); /* no effect on a zeroed table */
/* On FOUND, `host` holds the result; its capacity is ASI_HOST_CAPACITY. */
asi_host_outcome asi_host_table_find(
    const asi_host_table *table, const asi_counters *counters, const char *name, char *host);

#endif
