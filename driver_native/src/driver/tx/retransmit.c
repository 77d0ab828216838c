/* See retransmit.h. */
#include "driver/tx/retransmit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "wire/frame.h"

/* Spec: 04 §7.2 - the default receiver window, independent of the settings. */
#define ASSUMED_WINDOW_LENGTH (128 * 1024)

as_result asi_retransmit_open(asi_retransmit *retransmit, const asi_retransmit_params *params)
{
    const int64_t half = params->term_length / 2;
    const int64_t window = half < ASSUMED_WINDOW_LENGTH ? half : ASSUMED_WINDOW_LENGTH;
    const int64_t max_length = window * params->rrwm;
    *retransmit = (asi_retransmit){
        .capacity = params->is_group ? params->max_resend : 1,
        .is_group = params->is_group,
        .term_length = params->term_length,
        .max_length = max_length < params->term_length ? (int32_t)max_length : params->term_length,
        .window_length = (int32_t)window,
        .delay_ns = params->delay_ns,
        .linger_ns = params->linger_ns
    };
    retransmit->resends = calloc((size_t)retransmit->capacity, sizeof(*retransmit->resends));
    return NULL != retransmit->resends ? AS_OK : asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for %d resends", params->max_resend);
}

void asi_retransmit_close(asi_retransmit *retransmit)
{
    free(retransmit->resends);
    retransmit->resends = NULL;
}

static bool is_covered(const asi_retransmit *retransmit, int32_t term_id, int32_t term_offset)
{
    for (int32_t i = 0; i < retransmit->capacity; i++)
    {
        const asi_resend *resend = &retransmit->resends[i];
        if (ASI_RESEND_INACTIVE != resend->state && term_id == resend->term_id && term_offset >= resend->term_offset &&
            term_offset < resend->term_offset + resend->length)
        {
            return true;
        }
    }
    return false;
}

/* A unicast peer requests one gap at a time, so a new request replaces the old one. */
static asi_resend *take(asi_retransmit *retransmit)
{
    for (int32_t i = 0; i < retransmit->capacity; i++)
    {
        if (!retransmit->is_group || ASI_RESEND_INACTIVE == retransmit->resends[i].state)
        {
            retransmit->active_count += ASI_RESEND_INACTIVE == retransmit->resends[i].state ? 1 : 0;
            return &retransmit->resends[i];
        }
    }
    return NULL;
}

asi_nak_outcome asi_retransmit_on_nak(asi_retransmit *retransmit, int32_t term_id, int32_t term_offset, int32_t length,
    int64_t now_ns, asi_resend *range)
{
    if (term_offset < 0 || term_offset >= retransmit->term_length || 0 != term_offset % AS_FRAME_ALIGNMENT || length < 0 ||
        length > retransmit->term_length - term_offset) /* Spec: 11 N5 */
    {
        return ASI_NAK_INVALID;
    }
    if (0 == length || is_covered(retransmit, term_id, term_offset))
    {
        return ASI_NAK_SUPPRESSED;
    }
    asi_resend *resend = take(retransmit);
    if (NULL == resend)
    {
        return ASI_NAK_OVERFLOW;
    }
    const bool is_delayed = retransmit->delay_ns > 0;
    const int32_t most = retransmit->max_length < retransmit->window_length ? retransmit->max_length : retransmit->window_length;
    *resend = (asi_resend){
        .state = is_delayed ? ASI_RESEND_DELAYED : ASI_RESEND_LINGERING,
        .term_id = term_id,
        .term_offset = term_offset,
        .length = length < most ? length : most,
        .index = (int32_t)(resend - retransmit->resends),
        .expiry_ns = now_ns + (is_delayed ? retransmit->delay_ns : retransmit->linger_ns)
    };
    *range = *resend;
    return is_delayed ? ASI_NAK_DELAYED : ASI_NAK_RESEND;
}

void asi_retransmit_release(asi_retransmit *retransmit, const asi_resend *range)
{
    asi_resend *resend = &retransmit->resends[range->index];
    AS_ASSERT(ASI_RESEND_INACTIVE != resend->state && retransmit->active_count > 0);
    resend->state = ASI_RESEND_INACTIVE;
    retransmit->active_count--;
}

bool asi_retransmit_next_due(asi_retransmit *retransmit, int64_t now_ns, asi_resend *range)
{
    for (int32_t i = 0; retransmit->active_count > 0 && i < retransmit->capacity; i++)
    {
        asi_resend *resend = &retransmit->resends[i];
        if (ASI_RESEND_SENDING == resend->state)
        {
            resend->state = ASI_RESEND_LINGERING;
            resend->expiry_ns = now_ns + retransmit->linger_ns;
            *range = *resend;
            range->term_offset += resend->done;
            range->length -= resend->done;
            return true;
        }
        if (ASI_RESEND_INACTIVE == resend->state || now_ns <= resend->expiry_ns)
        {
            continue;
        }
        if (ASI_RESEND_DELAYED == resend->state)
        {
            resend->state = ASI_RESEND_LINGERING;
            resend->expiry_ns = now_ns + retransmit->linger_ns;
            *range = *resend;
            return true;
        }
        AS_ASSERT(ASI_RESEND_LINGERING == resend->state && retransmit->active_count > 0);
        resend->state = ASI_RESEND_INACTIVE;
        retransmit->active_count--;
    }
    return false;
}

void asi_retransmit_put_back(asi_retransmit *retransmit, const asi_resend *range, int32_t done)
{
    asi_resend *resend = &retransmit->resends[range->index];
    AS_ASSERT(ASI_RESEND_LINGERING == resend->state && done >= 0 && resend->done + done < resend->length);
    resend->state = ASI_RESEND_SENDING;
    resend->done += done;
}

void asi_retransmit_on_window(asi_retransmit *retransmit, int32_t window_length)
{
    if (window_length > retransmit->window_length)
    {
        retransmit->window_length = window_length;
    }
}
