/* Images that could not be mapped yet: out of descriptors, address space or memory. The driver counts their subscriber as a reader
 * that stands at the join position, so nothing is lost while they wait, and the publisher waits, too. The conductor tries them
 * again until they are there, or the driver takes them back. Thread rule: the caller holds the client's lock. */
#ifndef ASI_CLIENT_WAITING_IMAGES_H
#define ASI_CLIENT_WAITING_IMAGES_H

#include "client/state.h"

#define ASI_MAPPING_INTERVAL_NS 100000000LL

typedef struct asi_waiting_image
{
    as_subscription *subscription;
    asi_rsp_available_image available;
    char *path;            /* owned, as is the next */
    char *source_identity;
    struct asi_waiting_image *next;
} asi_waiting_image;

/* Behind all that wait. */
as_result asi_waiting_images_add(as_subscription *subscription, const asi_rsp_available_image *available, const char *path,
    const char *source_identity) AS_MUST_USE;
/* Forgets those of the subscription: one, or all with AS_NULL_VALUE. */
void asi_waiting_images_drop(const as_subscription *subscription, int64_t image_id);
/* The one that has waited longest since its last try; NULL: none. The caller puts it back or frees it. */
asi_waiting_image *asi_waiting_images_take(as_client *client);
void asi_waiting_images_put_back(as_client *client, asi_waiting_image *image);
void asi_waiting_image_free(asi_waiting_image *image);

#endif
