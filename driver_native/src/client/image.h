/* Images of a subscription. Thread rule: the client's lock is held. */
#ifndef ASI_CLIENT_IMAGE_H
#define ASI_CLIENT_IMAGE_H

#include "client/state.h"

as_result asi_image_create(as_subscription *subscription, const asi_rsp_available_image *available, const char *path,
    const char *source_identity, as_image **image) AS_MUST_USE;
void asi_image_close(as_image *image);
void asi_image_free(as_image *image);

#endif
