/* Images of a subscription. Thread rule: the caller holds the client's lock. */
#ifndef ASI_CLIENT_IMAGE_H
#define ASI_CLIENT_IMAGE_H

#include "client/state.h"

as_result asi_client_image_create(as_subscription *subscription, const asi_rsp_available_image *available, const char *path,
    const char *source_identity, as_image **image) AS_MUST_USE;
void asi_client_image_close(as_image *image);
void asi_client_image_free(as_image *image);
/* Keeps the struct, so that any thread may ask whether the image is closed, but not its log. NULL is allowed, and for unwatch
 * no lock is needed. */
as_image *asi_client_image_watch(as_image *image);
void asi_client_image_unwatch(as_image *image);
/* What a refused poll returns: 0 when the image is closed, AS_E_USAGE when another poll is running. Polling thread, no lock. */
as_result asi_client_image_refuse_poll(const as_image *image) AS_MUST_USE;

#endif
