/* See proofs.h. */
#include "driver/rx/proofs.h"

#include <string.h>

#include "base/bits.h"
#include "base/sha256.h"

#define TIME_BITS 33 /* a challenge can be answered for 8 to 17 s */
#define NO_TIME (-1)

static int64_t mac_of(const asi_proofs *proofs, const asi_proof_subject *subject, int64_t time)
{
    struct
    {
        char source[ASI_ADDRESS_TEXT_CAPACITY];
        int64_t time;
        int32_t stream_id;
        int32_t session_id;
    } message = { .time = time, .stream_id = subject->stream_id, .session_id = subject->session_id };
    uint8_t mac[ASI_SHA256_LENGTH];
    asi_address_format(subject->source, message.source);
    asi_hmac_sha256(&proofs->secret, sizeof(proofs->secret), &message, sizeof(message), mac);
    return asi_get_i64(mac);
}

void asi_proofs_init(asi_proofs *proofs, uint64_t secret, int64_t now_ns)
{
    *proofs = (asi_proofs){ .secret = secret, .until_ns = now_ns, .challenged_ns = now_ns - 2 * (1LL << TIME_BITS) };
}

int64_t asi_proofs_challenge(asi_proofs *proofs, const asi_proof_subject *subject, int64_t now_ns)
{
    proofs->challenged_ns = now_ns;
    return mac_of(proofs, subject, now_ns >> TIME_BITS);
}

void asi_proofs_take(asi_proofs *proofs, const asi_proof_subject *subject, int64_t echo_ns, int64_t now_ns)
{
    const int64_t time = now_ns >> TIME_BITS;
    if (now_ns - proofs->challenged_ns > 2 * (1LL << TIME_BITS) ||
        (echo_ns != mac_of(proofs, subject, time) && echo_ns != mac_of(proofs, subject, time - 1)))
    {
        return;
    }
    const int64_t id = mac_of(proofs, subject, NO_TIME);
    proofs->until_ns = now_ns + ASI_PROOF_NS;
    proofs->given[id & (ASI_PROOFS_CAPACITY - 1)] = (asi_proof){ .id = id, .until_ns = now_ns + ASI_PROOF_NS };
}

bool asi_proofs_has(const asi_proofs *proofs, const asi_proof_subject *subject, int64_t now_ns)
{
    if (now_ns >= proofs->until_ns) /* spares the MAC of every SETUP while nobody has to prove anything */
    {
        return false;
    }
    const int64_t id = mac_of(proofs, subject, NO_TIME);
    const asi_proof *proof = &proofs->given[id & (ASI_PROOFS_CAPACITY - 1)];
    return id == proof->id && now_ns < proof->until_ns;
}
