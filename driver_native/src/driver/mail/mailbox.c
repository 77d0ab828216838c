/* See mailbox.h. */
#include "driver/mail/mailbox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"

static int64_t *sequence_of(const asi_mailbox *mailbox, int64_t ticket)
{
    return (int64_t *)(void *)(mailbox->slots + (size_t)(ticket & (mailbox->capacity - 1)) * mailbox->stride);
}

as_result asi_mailbox_open(asi_mailbox *mailbox, int64_t capacity, size_t message_size)
{
    *mailbox = (asi_mailbox){ .capacity = capacity, .message_size = message_size };
    mailbox->stride = (size_t)asi_align_i64((int64_t)(sizeof(int64_t) + message_size), (int64_t)sizeof(int64_t));
    mailbox->slots = calloc((size_t)capacity, mailbox->stride);
    if (NULL == mailbox->slots)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a mailbox of %lld messages", (long long)capacity);
    }
    for (int64_t i = 0; i < capacity; i++)
    {
        *sequence_of(mailbox, i) = i;
    }
    return AS_OK;
}

void asi_mailbox_close(asi_mailbox *mailbox)
{
    free(mailbox->slots);
    mailbox->slots = NULL;
}

bool asi_mailbox_put(asi_mailbox *mailbox, const void *message)
{
    for (;;)
    {
        const int64_t ticket = asi_load_relaxed_i64(&mailbox->tail);
        int64_t *sequence = sequence_of(mailbox, ticket);
        /* Acquire: pairs with the consumer's release, so that the message is not overwritten while it is copied out. */
        const int64_t turn = asi_load_acquire_i64(sequence);
        if (turn < ticket)
        {
            return false;
        }
        if (turn == ticket && asi_cas_i64(&mailbox->tail, ticket, ticket + 1))
        {
            memcpy(sequence + 1, message, mailbox->message_size);
            asi_store_release_i64(sequence, ticket + 1);
            return true;
        }
    }
}

bool asi_mailbox_take(asi_mailbox *mailbox, void *message)
{
    int64_t *sequence = sequence_of(mailbox, mailbox->head);
    if (asi_load_acquire_i64(sequence) != mailbox->head + 1)
    {
        return false;
    }
    memcpy(message, sequence + 1, mailbox->message_size);
    asi_store_release_i64(sequence, mailbox->head + mailbox->capacity);
    mailbox->head++;
    return true;
}
