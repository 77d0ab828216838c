/* Decides which NAKs are answered and when. A small pool of resends; each blocks further resends of its range for a while.
 * Spec: 04 §7.
 *
 * Owned by a publication; used by the sender. The caller resends; on_nak and next_due return the ranges.
 * Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_RETRANSMIT_H
#define ASI_DRIVER_TX_RETRANSMIT_H

#include "base/result.h"

#define ASI_MAX_RESEND_LIMIT 256

typedef enum asi_resend_state
{
    ASI_RESEND_INACTIVE,
    ASI_RESEND_DELAYED,
    ASI_RESEND_SENDING, /* a part was sent, the rest is due */
    ASI_RESEND_LINGERING
} asi_resend_state;

typedef struct asi_resend
{
    asi_resend_state state;
    int32_t term_id;
    int32_t term_offset;
    int32_t length;
    int32_t done;  /* bytes of `length` sent, while SENDING */
    int32_t index; /* index in the pool */
    int64_t expiry_ns;
} asi_resend;

typedef struct asi_retransmit
{
    asi_resend *resends;  /* owned */
    int32_t capacity;     /* 1 for unicast */
    int32_t active_count; /* number that are not INACTIVE */
    bool is_group;
    int32_t term_length;
    int32_t max_length;   /* maximum length of one resend */
    int32_t window_length; /* longest window that a receiver reported; gaps of honest receivers are not longer */
    int64_t delay_ns;
    int64_t linger_ns;
} asi_retransmit;

typedef struct asi_retransmit_params
{
    bool is_group;
    int32_t max_resend;
    int32_t term_length;
    int64_t rrwm;
    int64_t delay_ns;
    int64_t linger_ns;
} asi_retransmit_params;

typedef enum asi_nak_outcome
{
    ASI_NAK_INVALID,
    ASI_NAK_SUPPRESSED, /* empty, or in progress */
    ASI_NAK_OVERFLOW,   /* the pool is full */
    ASI_NAK_DELAYED,    /* *range is due after the delay */
    ASI_NAK_RESEND      /* send *range now */
} asi_nak_outcome;

as_result asi_retransmit_open(asi_retransmit *retransmit, const asi_retransmit_params *params) AS_MUST_USE;
void asi_retransmit_close(asi_retransmit *retransmit); /* no effect on a zeroed one */
asi_nak_outcome asi_retransmit_on_nak(asi_retransmit *retransmit, int32_t term_id, int32_t term_offset, int32_t length,
    int64_t now_ns, asi_resend *range);
/* Gives back what the NAK has just taken: there is nothing to send. */
void asi_retransmit_release(asi_retransmit *retransmit, const asi_resend *range);
/* Frees resends whose linger time is over. True with a range whose delay is over, or with the rest of one. Call until false. */
bool asi_retransmit_next_due(asi_retransmit *retransmit, int64_t now_ns, asi_resend *range);
/* Call when only `done` bytes of the last returned range were sent: the rest is due next time. */
void asi_retransmit_put_back(asi_retransmit *retransmit, const asi_resend *range, int32_t done);
/* Records a receiver's window. */
void asi_retransmit_on_window(asi_retransmit *retransmit, int32_t window_length);

#endif
