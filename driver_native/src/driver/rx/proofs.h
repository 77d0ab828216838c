/* Proofs that the source of a SETUP hears what is sent to it.
 *
 * Any host can forge the source of a SETUP, and even the data that follows it. While room for new streams is short, the conductor
 * refuses a SETUP without a proof, and the receiver challenges its source: an RTTM whose echo timestamp is a number that nobody can
 * guess. Publishers answer an RTTM for a stream that they send (Spec: 04 §10.5); the answer is the proof, and the next SETUP
 * counts. The number is a MAC over source, stream, session and time, so a challenge takes no memory, whoever is forged.
 *
 * Owned by the receiver. Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_PROOFS_H
#define ASI_DRIVER_RX_PROOFS_H

#include "driver/net/address.h"

#define ASI_PROOFS_CAPACITY 1024       /* a power of two; a proof may replace another one, which then has to be given again */
#define ASI_PROOF_NS 10000000000LL     /* how long a proof counts */

/* What is proven: that a stream's publisher is at that address. */
typedef struct asi_proof_subject
{
    const asi_address *source;
    int32_t stream_id;
    int32_t session_id;
} asi_proof_subject;

typedef struct asi_proof
{
    int64_t id; /* a MAC over the subject */
    int64_t until_ns;
} asi_proof;

typedef struct asi_proofs
{
    uint64_t secret;
    int64_t until_ns;      /* no proof counts any more then */
    int64_t challenged_ns; /* the last challenge */
    asi_proof given[ASI_PROOFS_CAPACITY];
} asi_proofs;

/* `secret` is not guessable from what the driver sends. */
void asi_proofs_init(asi_proofs *proofs, uint64_t secret, int64_t now_ns);
/* The echo timestamp of a challenge. */
int64_t asi_proofs_challenge(asi_proofs *proofs, const asi_proof_subject *subject, int64_t now_ns);
/* On an RTTM that answers: remembers the proof if the echo timestamp is right. */
void asi_proofs_take(asi_proofs *proofs, const asi_proof_subject *subject, int64_t echo_ns, int64_t now_ns);
bool asi_proofs_has(const asi_proofs *proofs, const asi_proof_subject *subject, int64_t now_ns);

#endif
