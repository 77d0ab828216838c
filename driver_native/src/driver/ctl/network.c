/* See network.h. */
#include "driver/ctl/network.h"

#include "base/atomic.h"
#include "driver/ctl/agent_queues.h"
#include "driver/ctl/images.h"
#include "driver/ctl/images_open.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/names.h"
#include "driver/ctl/network_open.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/on_agent_command.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/send_channels.h"

#define COMMANDS_PER_CYCLE 16

as_result asi_network_open(asi_conductor *conductor, const asi_network_params *params)
{
    conductor->network = (asi_network){
        .send_ops = params->send_ops,
        .receive_ops = params->receive_ops,
        .own_ops = params->own_ops,
        .resolver = asi_names_resolver(conductor),
        .limits = params->limits,
        .to_sender = params->to_sender,
        .to_receiver = params->to_receiver,
        .from_agents = params->from_agents,
        .next_receiver_id = (int64_t)asi_rand_u64(&conductor->rand) & INT64_MAX >> 1, /* Spec: 04 §1.7; room to increment */
        .loss_report = { .buffer = params->loss_report->base, .length = params->loss_report->length }
    };
    return asi_names_open(conductor, params->resolver);
}

void asi_network_close(asi_conductor *conductor)
{
    asi_network *network = &conductor->network;
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_close(conductor, network->images.items[i]);
    }
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication_close(conductor, network->publications.items[i]);
    }
    asi_list_close(&network->images);
    asi_list_close(&network->publications);
    asi_send_channels_close(conductor);
    asi_receive_channels_close(conductor);
    asi_names_close(conductor);
    asi_agent_queues_close(conductor);
}

/* -- commands ------------------------------------------------------------------------------------------------------------ */

static int take_commands(asi_conductor *conductor)
{
    asi_conductor_command command;
    int count = 0;
    while (count < COMMANDS_PER_CYCLE && asi_command_queue_take(conductor->network.from_agents, &command))
    {
        asi_on_agent_command(conductor, &command);
        count++;
    }
    return count;
}

/* -- duty cycle ----------------------------------------------------------------------------------------------------------- */

static int update_publication(asi_conductor *conductor, asi_network_publication *publication)
{
    const int work = asi_network_publication_update(publication, conductor->now_ns);
    if (work > 0)
    {
        asi_round_robin_mark_busy(&conductor->network.publication_schedule, publication, conductor->now_ns);
    }
    return work;
}

/* Returns 1 when it was freed. */
static int drop_if_done_publication(asi_conductor *conductor, int32_t index)
{
    asi_network_publication *publication = conductor->network.publications.items[index];
    if (ASI_PUBLICATION_DONE != publication->state || !asi_load_acquire_bool(&publication->sender.is_released))
    {
        return 0;
    }
    asi_round_robin_remove(&conductor->network.publication_schedule, publication);
    asi_list_remove_at(&conductor->network.publications, index);
    asi_network_publication_close(conductor, publication);
    return 1;
}

static int update_publications(asi_conductor *conductor)
{
    int work = 0;
    asi_list *publications = &conductor->network.publications;
    asi_round_robin *schedule = &conductor->network.publication_schedule;
    const int32_t count = publications->count;
    const int32_t turns = asi_round_robin_slots(schedule, count, conductor->now_ns);
    for (int32_t i = 0; turns < count && i < schedule->busy_count; i++)
    {
        work += update_publication(conductor, schedule->busy[i].item);
    }
    for (int32_t i = 0; i < turns && publications->count > 0; i++)
    {
        const int32_t at = asi_round_robin_next(schedule, publications->count);
        work += update_publication(conductor, publications->items[at]);
        work += drop_if_done_publication(conductor, at);
    }
    asi_round_robin_expire_busy(schedule, conductor->now_ns);
    return work;
}

static int update_image(asi_conductor *conductor, asi_network_image *image)
{
    const int work = asi_network_image_update(conductor, image);
    if (work > 0)
    {
        asi_round_robin_mark_busy(&conductor->network.image_schedule, image, conductor->now_ns);
    }
    return work;
}

/* Returns 1 when it was freed. */
static int drop_if_done_image(asi_conductor *conductor, int32_t index)
{
    asi_network_image *image = conductor->network.images.items[index];
    if (ASI_IMAGE_DONE != image->state || !asi_load_acquire_bool(&image->image.is_released))
    {
        return 0;
    }
    asi_round_robin_remove(&conductor->network.image_schedule, image);
    asi_list_remove_at(&conductor->network.images, index);
    asi_network_image_close(conductor, image);
    return 1;
}

static int update_images(asi_conductor *conductor)
{
    int work = 0;
    asi_list *images = &conductor->network.images;
    asi_round_robin *schedule = &conductor->network.image_schedule;
    const int32_t count = images->count;
    const int32_t turns = asi_round_robin_slots(schedule, count, conductor->now_ns);
    for (int32_t i = 0; turns < count && i < schedule->busy_count; i++)
    {
        work += update_image(conductor, schedule->busy[i].item);
    }
    for (int32_t i = 0; i < turns && images->count > 0; i++)
    {
        const int32_t at = asi_round_robin_next(schedule, images->count);
        work += update_image(conductor, images->items[at]);
        work += drop_if_done_image(conductor, at);
    }
    asi_round_robin_expire_busy(schedule, conductor->now_ns);
    return work;
}

int asi_network_do_work(asi_conductor *conductor)
{
    int work = asi_agent_queues_flush(conductor);
    work += take_commands(conductor);
    work += asi_names_do_work(conductor);
    work += update_images(conductor);
    work += update_publications(conductor);
    work += asi_send_channels_collect(conductor);
    work += asi_receive_channels_collect(conductor);
    return work;
}

void asi_network_on_timer(asi_conductor *conductor)
{
    const asi_network *network = &conductor->network;
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication_on_timer(conductor, network->publications.items[i]);
    }
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_on_timer(conductor, network->images.items[i]);
    }
}
