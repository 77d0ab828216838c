/* See agent_queues.h. */
#include "driver/ctl/agent_queues.h"

#include "driver/ctl/report.h"

static void close_outbox(asi_list *outbox)
{
    for (int32_t i = 0; i < outbox->count; i++)
    {
        free(outbox->items[i]);
    }
    asi_list_close(outbox);
}

/* Puts the command into the queue directly when the outbox is empty. */
static void post(
    asi_conductor *conductor, asi_command_queue *queue, asi_list *outbox, const void *command, size_t length, int32_t failures_id)
{
    if (0 == outbox->count && asi_command_queue_put(queue, command))
    {
        return;
    }
    asi_conductor_count(conductor, failures_id, 1);
    void *copy = malloc(length);
    if (NULL == copy || AS_OK != asi_list_add(outbox, copy))
    {
        free(copy);
        asi_conductor_log_failure(
            conductor, asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for command to an agent: a stream may stay open"));
        return;
    }
    memcpy(copy, command, length);
}

static int flush(asi_command_queue *queue, asi_list *outbox)
{
    int sent = 0;
    while (sent < outbox->count && asi_command_queue_put(queue, outbox->items[sent]))
    {
        free(outbox->items[sent]);
        sent++;
    }
    if (sent > 0)
    {
        outbox->count -= sent;
        memmove(outbox->items, outbox->items + sent, (size_t)outbox->count * sizeof(*outbox->items));
    }
    return sent;
}

void asi_network_to_sender(asi_conductor *conductor, const asi_sender_command *command)
{
    asi_network *network = &conductor->network;
    post(conductor, network->to_sender, &network->sender_outbox, command, sizeof(*command), ASI_SYSTEM_SENDER_OFFER_FAILURES);
}

void asi_network_to_receiver(asi_conductor *conductor, const asi_receiver_command *command)
{
    asi_network *network = &conductor->network;
    post(conductor, network->to_receiver, &network->receiver_outbox, command, sizeof(*command), ASI_SYSTEM_RECEIVER_OFFER_FAILURES);
}

int asi_agent_queues_flush(asi_conductor *conductor)
{
    asi_network *network = &conductor->network;
    return flush(network->to_sender, &network->sender_outbox) + flush(network->to_receiver, &network->receiver_outbox);
}

void asi_agent_queues_close(asi_conductor *conductor)
{
    close_outbox(&conductor->network.sender_outbox);
    close_outbox(&conductor->network.receiver_outbox);
}
