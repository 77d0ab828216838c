/* See subscription_links.h. */
#include "driver/ctl/subscription_links.h"

#include "driver/ctl/images.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/subscribers.h"

void asi_ctl_subscription_link(asi_conductor *conductor, asi_ctl_subscription *subscription)
{
    const asi_network *network = &conductor->network;
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_link(conductor, conductor->publications.items[i], subscription);
    }
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication_link(conductor, network->publications.items[i], subscription);
    }
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_link(conductor, network->images.items[i], subscription);
    }
}

void asi_ctl_subscription_unlink(asi_conductor *conductor, const asi_ctl_subscription *subscription, bool withdraw)
{
    const asi_network *network = &conductor->network;
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_publication *publication = conductor->publications.items[i];
        if (asi_ipc_unlink(conductor, publication, subscription) && withdraw)
        {
            asi_subscribers_withdraw_one(conductor, &publication->subscribers, subscription);
        }
    }
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication *publication = network->publications.items[i];
        if (asi_network_publication_unlink(conductor, publication, subscription) && withdraw)
        {
            asi_subscribers_withdraw_one(conductor, &publication->spies, subscription);
        }
    }
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_unlink(conductor, network->images.items[i], subscription);
    }
}
