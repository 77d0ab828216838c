/* See waiting_images.h. */
#include "client/waiting_images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void asi_waiting_image_free(asi_waiting_image *image)
{
    if (NULL != image)
    {
        free(image->path);
        free(image->source_identity);
        free(image);
    }
}

void asi_waiting_images_put_back(as_client *client, asi_waiting_image *image)
{
    asi_waiting_image **link = &client->waiting_images;
    while (NULL != *link)
    {
        link = &(*link)->next;
    }
    image->next = NULL;
    *link = image;
}

as_result asi_waiting_images_add(as_subscription *subscription, const asi_rsp_available_image *available, const char *path,
    const char *source_identity)
{
    as_client *client = subscription->client;
    asi_waiting_image *image = calloc(1, sizeof(*image));
    if (NULL != image)
    {
        image->subscription = subscription;
        image->available = *available;
        image->path = strdup(path);
        image->source_identity = strdup(source_identity);
    }
    if (NULL == image || NULL == image->path || NULL == image->source_identity)
    {
        asi_waiting_image_free(image);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an image of session-id=%d stream-id=%d: it is not read; close the "
            "subscription and add it again", available->session_id, available->stream_id);
    }
    client->next_mapping_ns = NULL == client->waiting_images ? client->last_service_ns + ASI_MAPPING_INTERVAL_NS :
        client->next_mapping_ns;
    asi_waiting_images_put_back(client, image);
    return AS_OK;
}

void asi_waiting_images_drop(const as_subscription *subscription, int64_t image_id)
{
    for (asi_waiting_image **link = &subscription->client->waiting_images; NULL != *link;)
    {
        asi_waiting_image *image = *link;
        if (image->subscription != subscription ||
            (AS_NULL_VALUE != image_id && image_id != image->available.image_correlation_id))
        {
            link = &image->next;
            continue;
        }
        *link = image->next;
        asi_waiting_image_free(image);
    }
}

asi_waiting_image *asi_waiting_images_take(as_client *client)
{
    asi_waiting_image *image = client->waiting_images;
    client->waiting_images = NULL == image ? NULL : image->next;
    return image;
}
