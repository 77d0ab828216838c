/* Who answers a challenge is proven for a time, for its address, stream and session, and with this driver's secret only. */
#include <arpa/inet.h>

#include "check.h"
#include "driver/rx/proofs.h"

#define SECOND 1000000000LL

static asi_address address_of(const char *host, uint16_t port)
{
    asi_address address = asi_address_any(AF_INET);
    CHECK(1 == inet_pton(AF_INET, host, &address.v4.sin_addr));
    asi_address_set_port(&address, port);
    return address;
}

static void an_answer_counts_for_what_was_asked(void)
{
    static asi_proofs proofs;
    static asi_proofs others;
    const asi_address at = address_of("10.0.0.1", 5000);
    const asi_address other_port = address_of("10.0.0.1", 5001);
    const asi_address other_host = address_of("10.0.0.2", 5000);
    const asi_proof_subject subject = { .source = &at, .stream_id = 10, .session_id = 20 };
    const asi_proof_subject wrong[] = {
        { .source = &other_port, .stream_id = 10, .session_id = 20 }, { .source = &other_host, .stream_id = 10, .session_id = 20 },
        { .source = &at, .stream_id = 11, .session_id = 20 }, { .source = &at, .stream_id = 10, .session_id = 21 }
    };
    asi_proofs_init(&proofs, 4711, SECOND);
    asi_proofs_init(&others, 4712, SECOND);
    const int64_t echo = asi_proofs_challenge(&proofs, &subject, SECOND);
    CHECK(echo != asi_proofs_challenge(&others, &subject, SECOND));
    for (int i = 0; i < 4; i++)
    {
        asi_proofs_take(&proofs, &wrong[i], echo, SECOND);
        CHECK(!asi_proofs_has(&proofs, &wrong[i], SECOND));
    }
    asi_proofs_take(&proofs, &subject, echo + 1, SECOND);
    CHECK(!asi_proofs_has(&proofs, &subject, SECOND));
    asi_proofs_take(&proofs, &subject, echo, SECOND);
    CHECK(asi_proofs_has(&proofs, &subject, SECOND));
    for (int i = 0; i < 4; i++)
    {
        CHECK(!asi_proofs_has(&proofs, &wrong[i], SECOND));
    }
    asi_proofs_take(&proofs, &wrong[0], asi_proofs_challenge(&proofs, &wrong[0], 5 * SECOND), 5 * SECOND);
    CHECK(asi_proofs_has(&proofs, &subject, SECOND + ASI_PROOF_NS - 1));
    CHECK(!asi_proofs_has(&proofs, &subject, SECOND + ASI_PROOF_NS));
    CHECK(asi_proofs_has(&proofs, &wrong[0], SECOND + ASI_PROOF_NS));
}

/* A round trip of eight seconds is in time at any time; an answer of twenty seconds later is not, nor one when nobody was asked. */
static void answers_come_in_time(void)
{
    static asi_proofs proofs;
    const asi_address at = address_of("10.0.0.1", 5000);
    const asi_proof_subject subject = { .source = &at, .stream_id = 10, .session_id = 20 };
    for (int64_t asked = SECOND; asked < 30 * SECOND; asked += SECOND / 2)
    {
        asi_proofs_init(&proofs, 4711, asked);
        int64_t echo = asi_proofs_challenge(&proofs, &subject, asked);
        asi_proofs_take(&proofs, &subject, echo, asked + 20 * SECOND);
        CHECK(!asi_proofs_has(&proofs, &subject, asked + 20 * SECOND));
        (void)asi_proofs_challenge(&proofs, &subject, asked + 20 * SECOND);
        asi_proofs_take(&proofs, &subject, echo, asked + 20 * SECOND);
        CHECK(!asi_proofs_has(&proofs, &subject, asked + 20 * SECOND));
        echo = asi_proofs_challenge(&proofs, &subject, asked);
        asi_proofs_take(&proofs, &subject, echo, asked + 8 * SECOND);
        CHECK(asi_proofs_has(&proofs, &subject, asked + 8 * SECOND));
    }
}

int main(void)
{
    RUN(an_answer_counts_for_what_was_asked);
    RUN(answers_come_in_time);
    return 0;
}
