/* Resolves host names: by the system, by a table in the settings, or by the names that other drivers announce (gossip).
 * Spec: 05 §9, 04 §17. Opened by network.c. System counters 32 and 33 record resolution times. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NAMES_H
#define ASI_DRIVER_CTL_NAMES_H

#include "driver/config.h"
#include "driver/ctl/gossip.h"
#include "driver/ctl/host_table.h"

typedef struct asi_conductor asi_conductor;

typedef struct asi_names
{
    asi_host_table table;     /* csv_table; empty otherwise */
    asi_gossip *gossip;       /* owned; NULL unless configured */
} asi_names;

/* AS_E_USAGE names the invalid setting. */
as_result asi_names_open(asi_conductor *conductor, asi_name_resolver system) AS_MUST_USE;
void asi_names_close(asi_conductor *conductor); /* no effect when nothing was opened */
/* For asi_address_resolve; valid as long as the conductor. */
asi_name_resolver asi_names_resolver(asi_conductor *conductor);
/* Each duty cycle; returns the work count. */
int asi_names_do_work(asi_conductor *conductor);

#endif
