/* Clients and the resources that belong to one client: heartbeat counters, user counters, links to publications; timeouts.
 * Spec: 03 §6.5, §6.10, §12.
 *
 * The first command that adds a resource creates the client record. The timer reaps it after a CLIENT_CLOSE, or when its
 * heartbeat is older than the liveness timeout. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_LIVENESS_H
#define ASI_DRIVER_CTL_LIVENESS_H

#include "driver/ctl/state.h"

typedef struct asi_ctl_publication_link
{
    int64_t registration_id; /* correlation id of the command that added it */
    void *publication;       /* borrowed; holds one reference */
    void (*release)(void *publication, bool revoke); /* drops the reference */
} asi_ctl_publication_link;

typedef struct asi_client_counter
{
    int64_t registration_id;
    int32_t counter_id;
} asi_client_counter;

typedef struct asi_driver_client
{
    int64_t client_id;
    int64_t *heartbeat_ms;    /* borrowed; written by the client, or by the driver for KEEPALIVE and CLIENT_CLOSE */
    int32_t heartbeat_counter_id;
    bool closed_by_command;
    asi_list publication_links; /* of asi_ctl_publication_link, owned */
    asi_list counters;          /* of asi_client_counter, owned */
} asi_driver_client;

/* NULL when unknown. */
asi_driver_client *asi_client_find(asi_conductor *conductor, int64_t client_id);
/* Creates the record and announces its heartbeat counter when the client is new. */
as_result asi_client_get_or_add(asi_conductor *conductor, int64_t client_id, asi_driver_client **client) AS_MUST_USE;
/* The caller increments the reference count for the link. */
as_result asi_client_add_link(asi_driver_client *client, const asi_ctl_publication_link *added) AS_MUST_USE;
void asi_client_keepalive(asi_conductor *conductor, int64_t client_id);
void asi_client_close(asi_conductor *conductor, int64_t client_id);
/* Timer: reaps closed and timed-out clients. `remove_subscriptions` removes the subscriptions of a reaped client. */
void asi_clients_on_timer(asi_conductor *conductor, void (*remove_subscriptions)(asi_conductor *conductor, int64_t client_id));
/* Frees the records when the driver closes; sends nothing. */
void asi_clients_release(asi_conductor *conductor);

typedef struct asi_counter_command
{
    int64_t client_id;
    int64_t correlation_id;
    int64_t registration_id; /* of a static counter */
    int32_t type_id;
    const uint8_t *key;
    int32_t key_length;
    const char *label;
    int32_t label_length;
} asi_counter_command;

as_result asi_counter_add(asi_conductor *conductor, const asi_counter_command *command) AS_MUST_USE;
as_result asi_counter_add_static(asi_conductor *conductor, const asi_counter_command *command) AS_MUST_USE;
as_result asi_counter_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
    AS_MUST_USE;

#endif
