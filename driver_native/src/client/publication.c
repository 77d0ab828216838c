/* Publications: offer, claim and the state around them. term/append writes the frames. Spec: 02 §5-6, 03 §15.7.
 *
 * The closed flag is loaded first, then the limit, then the tail. If the conductor closes a publication while another thread
 * offers, that one message goes into a log that stays mapped for the linger time. */
#include "client/publication.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/counter_rows.h"
#include "client/lock.h"
#include "client/request.h"

/* -- under the lock ----------------------------------------------------------------------------------------------------- */

as_result asi_client_publication_create(
    as_client *client, asi_request *request, const asi_rsp_publication_ready *ready, const char *path)
{
    if (ready->position_limit_counter_id < 0 || ready->position_limit_counter_id >= client->counters.max_count)
    {
        return asi_fail(AS_E_DATA, 0, "the driver announced a publication with limit counter %d, ids are 0 to %d",
            ready->position_limit_counter_id, client->counters.max_count - 1);
    }
    /* The hot fields have cache lines of their own, so that writes to neighbouring objects do not slow them down. */
    as_publication *publication = aligned_alloc(ASI_CACHE_LINE, (size_t)asi_align_i64(sizeof(*publication), ASI_CACHE_LINE));
    if (NULL == publication)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a publication");
    }
    *publication = (as_publication){ 0 };
    const as_result result = asi_log_cache_acquire(&client->logs, ready->registration_id, path, &publication->log);
    if (AS_OK != result)
    {
        free(publication);
        return result;
    }
    asi_log *log = &publication->log->log;
    asi_appender_init(&publication->appender, log, ready->session_id, ready->stream_id,
        ASI_REQUEST_EXCLUSIVE_PUBLICATION == request->kind);
    publication->position_limit = asi_counter_addr(&client->counters, ready->position_limit_counter_id);
    publication->is_connected = &log->metadata->is_connected;
    publication->max_possible_position = asi_log_max_position(log->term_length);
    publication->max_message_length = asi_log_max_message_length(log->term_length);
    publication->client = client;
    publication->registration_id = ready->correlation_id;
    publication->original_registration_id = ready->registration_id;
    publication->limit_counter_id = ready->position_limit_counter_id;
    publication->channel_status_counter_id = ready->channel_status_id;
    publication->channel = request->channel;
    request->channel = NULL;
    publication->next = client->publications;
    client->publications = publication;
    asi_request_done(request, publication, 0);
    return AS_OK;
}

void asi_client_publication_free(as_publication *publication)
{
    free(publication->channel);
    free(publication);
}

static void close_publication(as_publication *publication, uint64_t flags)
{
    if (NULL == publication || AS_OK != asi_client_lock(publication->client))
    {
        return;
    }
    as_client *client = publication->client;
    for (as_publication **link = &client->publications; NULL != *link; link = &(*link)->next)
    {
        if (*link == publication)
        {
            *link = publication->next;
            asi_store_release_bool(&publication->is_closed, true);
            asi_client_send_remove(client, ASI_CMD_REMOVE_PUBLICATION, publication->registration_id, flags);
            asi_log_cache_release(publication->log, asi_clock_ns(&client->clock) + client->options.resource_linger_ns);
            asi_client_publication_free(publication);
            break;
        }
    }
    asi_client_unlock(client);
}

void as_publication_close(as_publication *publication)
{
    close_publication(publication, 0);
}

void as_publication_revoke(as_publication *publication)
{
    close_publication(publication, ASI_REMOVE_PUBLICATION_REVOKE);
}

/* -- the publishing path ------------------------------------------------------------------------------------------------ */

/* Spec: 02 §5.5 */
static int64_t back_pressure_status(const as_publication *publication, int64_t position, int64_t length)
{
    if (position + asi_align_i64(length + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT) >= publication->max_possible_position)
    {
        return AS_MAX_POSITION_EXCEEDED;
    }
    return 1 == asi_load_acquire_i32(publication->is_connected) ? AS_BACK_PRESSURED : AS_NOT_CONNECTED;
}

/* Checks whether `length` bytes may be appended now: 0, or the status to return. */
static inline int64_t check_flow(const as_publication *publication, int64_t length)
{
    if (__builtin_expect(asi_load_acquire_bool(&publication->is_closed), 0))
    {
        return AS_PUBLICATION_CLOSED;
    }
    const int64_t limit = asi_load_acquire_i64(publication->position_limit);
    const int64_t position = asi_append_position(&publication->appender);
    if (__builtin_expect(position < limit && position >= 0, 1))
    {
        return 0;
    }
    return position < 0 ? position : back_pressure_status(publication, position, length);
}

int64_t asi_client_publication_append(as_publication *publication, const asi_append_source *source)
{
    const int64_t status = check_flow(publication, source->length);
    return __builtin_expect(0 == status, 1) ? asi_append_message(&publication->appender, source) : status;
}

static int64_t refuse_length(const as_publication *publication, int64_t length, int64_t max_length)
{
    asi_fail(AS_E_USAGE, EINVAL, "%" PRId64 " bytes, publication of %s, stream %d takes 0 to %" PRId64, length,
        publication->channel, publication->appender.stream_id, max_length);
    return AS_PUBLICATION_ERROR;
}

int64_t as_publication_offer(as_publication *publication, const uint8_t *data, int64_t length)
{
    if (__builtin_expect(length < 0 || length > publication->max_message_length || (NULL == data && length > 0), 0))
    {
        return asi_load_acquire_bool(&publication->is_closed) ? AS_PUBLICATION_CLOSED :
            refuse_length(publication, length, publication->max_message_length);
    }
    const int64_t status = check_flow(publication, length);
    if (__builtin_expect(0 != status, 0))
    {
        return status;
    }
    if (__builtin_expect(length <= publication->appender.max_payload, 1))
    {
        return asi_append_short(&publication->appender, data, length);
    }
    const struct asi_append_part part = { .data = data, .length = length };
    const asi_append_source source = { .parts = &part, .part_count = 1, .length = length };
    return asi_append_message(&publication->appender, &source);
}

AS_STATIC_ASSERT(sizeof(as_iovec) == sizeof(struct asi_append_part) &&
        offsetof(as_iovec, data) == offsetof(struct asi_append_part, data) &&
        offsetof(as_iovec, length) == offsetof(struct asi_append_part, length), "an iovec is used as an append part in place");

int64_t as_publication_offerv(as_publication *publication, const as_iovec *parts, int64_t part_count,
    as_reserved_value_supplier supplier, void *supplier_context)
{
    int64_t length = 0;
    for (int64_t i = 0; i < part_count; i++)
    {
        /* Each part is bounded before it is added, so the sum cannot wrap. */
        const bool is_possible = parts[i].length >= 0 && parts[i].length <= publication->max_message_length &&
            (NULL != parts[i].data || 0 == parts[i].length);
        length += is_possible ? parts[i].length : 0;
        if (!is_possible || length > publication->max_message_length)
        {
            return refuse_length(publication, is_possible ? length : parts[i].length, publication->max_message_length);
        }
    }
    const asi_append_source source = {
        .parts = (const struct asi_append_part *)(const void *)parts,
        .part_count = part_count,
        .length = length,
        .supplier = supplier,
        .supplier_context = supplier_context,
    };
    return asi_client_publication_append(publication, &source);
}

int64_t as_publication_try_claim(as_publication *publication, int64_t length, as_buffer_claim *claim)
{
    if (length < 0 || length > publication->appender.max_payload)
    {
        return refuse_length(publication, length, publication->appender.max_payload);
    }
    const int64_t status = check_flow(publication, length);
    if (0 != status)
    {
        return status;
    }
    uint8_t *frame;
    const int64_t position = asi_append_claim(&publication->appender, length, &frame);
    if (position > 0)
    {
        *claim = (as_buffer_claim){ .frame = frame, .data = frame + AS_FRAME_HEADER_LENGTH, .length = length };
    }
    return position;
}

void as_buffer_claim_commit(as_buffer_claim *claim)
{
    asi_append_commit(claim->frame);
}

void as_buffer_claim_abort(as_buffer_claim *claim)
{
    asi_append_abort(claim->frame);
}

static int64_t refuse_shared(const as_publication *publication)
{
    asi_fail(AS_E_USAGE, 0, "publication of %s, stream %d is shared, this takes an exclusive one", publication->channel,
        publication->appender.stream_id);
    return AS_PUBLICATION_ERROR;
}

int64_t as_publication_append_padding(as_publication *publication, int64_t length)
{
    if (!publication->appender.is_exclusive)
    {
        return refuse_shared(publication);
    }
    /* Padding may be longer than any message: a publisher pads the end of a term when a fragmented message does not fit, and
     * a receiver pads lost data. Recordings contain such padding, and a replay must reproduce it in place. */
    const int64_t max_length = publication->appender.log->term_length - AS_FRAME_HEADER_LENGTH;
    if (length < 0 || length > max_length)
    {
        return refuse_length(publication, length, max_length);
    }
    const int64_t status = check_flow(publication, length);
    return 0 == status ? asi_append_padding(&publication->appender, length) : status;
}

int64_t as_publication_offer_block(as_publication *publication, const uint8_t *frames, int64_t length)
{
    if (!publication->appender.is_exclusive)
    {
        return refuse_shared(publication);
    }
    if (length < AS_FRAME_HEADER_LENGTH || NULL == frames)
    {
        return refuse_length(publication, length, publication->appender.log->term_length);
    }
    const int64_t status = check_flow(publication, length);
    return 0 == status ? asi_append_block(&publication->appender, frames, length) : status;
}

int64_t as_publication_claim_block(as_publication *publication, int64_t length, uint8_t **room)
{
    if (!publication->appender.is_exclusive)
    {
        return refuse_shared(publication);
    }
    if (length < AS_FRAME_HEADER_LENGTH)
    {
        return refuse_length(publication, length, publication->appender.log->term_length);
    }
    const int64_t status = check_flow(publication, length);
    return 0 == status ? asi_append_claim_block(&publication->appender, length, room) : status;
}

int64_t as_publication_commit_block(as_publication *publication, const uint8_t *first_word, int64_t length)
{
    if (!publication->appender.is_exclusive)
    {
        return refuse_shared(publication);
    }
    return asi_append_commit_block(&publication->appender, first_word, length);
}

/* -- state -------------------------------------------------------------------------------------------------------------- */

void as_publication_get_constants(const as_publication *publication, as_publication_constants *constants)
{
    const asi_log *log = publication->appender.log;
    *constants = (as_publication_constants){
        .channel = publication->channel,
        .registration_id = publication->registration_id,
        .original_registration_id = publication->original_registration_id,
        .max_possible_position = publication->max_possible_position,
        .stream_id = publication->appender.stream_id,
        .session_id = publication->appender.session_id,
        .initial_term_id = log->initial_term_id,
        .term_length = log->term_length,
        .mtu_length = log->mtu_length,
        .max_payload_length = publication->appender.max_payload,
        .max_message_length = publication->max_message_length,
        .limit_counter_id = publication->limit_counter_id,
        .channel_status_counter_id = publication->channel_status_counter_id,
        .is_exclusive = publication->appender.is_exclusive,
    };
}

bool as_publication_is_closed(const as_publication *publication)
{
    return asi_load_acquire_bool(&publication->is_closed);
}

int64_t as_publication_position(const as_publication *publication)
{
    /* Computed from the shared tail for both kinds, so that any thread may call this. */
    return as_publication_is_closed(publication) ? AS_PUBLICATION_CLOSED : asi_log_producer_position(publication->appender.log);
}

int64_t as_publication_position_limit(const as_publication *publication)
{
    return as_publication_is_closed(publication) ? AS_PUBLICATION_CLOSED : asi_load_acquire_i64(publication->position_limit);
}

int64_t as_publication_available_window(const as_publication *publication)
{
    return as_publication_is_closed(publication) ? AS_PUBLICATION_CLOSED :
        asi_wrap_sub_i64(asi_load_acquire_i64(publication->position_limit), asi_log_producer_position(publication->appender.log));
}

bool as_publication_is_connected(const as_publication *publication)
{
    return !as_publication_is_closed(publication) && 1 == asi_load_acquire_i32(publication->is_connected);
}

int64_t as_publication_channel_status(const as_publication *publication)
{
    return as_publication_is_closed(publication) ? AS_NULL_VALUE :
        asi_channel_status(publication->client, publication->channel_status_counter_id);
}
