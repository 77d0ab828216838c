/* Goal: a publication refuses lengths that no message can have, and reports permanently what can never be published. Method:
 * our driver and a client in invoker mode on one thread. Spec: 02 §5.5. */
#include "world.h"

static void lengths_out_of_range(world *w)
{
    pair p = world_pair(w, IPC_64K, true);
    uint8_t data[16] = { 0 };
    CHECK_I64(p.constants.max_message_length, 8192);
    CHECK_I64(p.constants.max_payload_length, p.constants.mtu_length - 32);
    CHECK_I64(as_publication_offer(p.publication, data, 8193), AS_PUBLICATION_ERROR);
    CHECK(NULL != strstr(as_error_text(), "8193 bytes"));
    CHECK_I64(as_publication_offer(p.publication, data, -1), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_offer(p.publication, NULL, 1), AS_PUBLICATION_ERROR);
    as_buffer_claim claim;
    CHECK_I64(as_publication_try_claim(p.publication, p.constants.max_payload_length + 1, &claim), AS_PUBLICATION_ERROR);
    const as_iovec huge[] = { { data, INT64_MAX }, { data, INT64_MAX } };
    CHECK_I64(as_publication_offerv(p.publication, huge, 2, NULL, NULL), AS_PUBLICATION_ERROR);
    uint8_t half[4097] = { 0 };
    const as_iovec halves[] = { { half, 4096 }, { half, 4097 } };
    CHECK_I64(as_publication_offerv(p.publication, halves, 2, NULL, NULL), AS_PUBLICATION_ERROR);
    CHECK(NULL != strstr(as_error_text(), "8193 bytes"));
    const as_iovec negative[] = { { half, 100 }, { half, -1 } };
    CHECK_I64(as_publication_offerv(p.publication, negative, 2, NULL, NULL), AS_PUBLICATION_ERROR);
    const as_iovec nothing[] = { { half, 100 }, { NULL, 1 } };
    CHECK_I64(as_publication_offerv(p.publication, nothing, 2, NULL, NULL), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_try_claim(p.publication, -1, &claim), AS_PUBLICATION_ERROR);
    CHECK_I64(as_publication_position(p.publication), 0);
    const as_iovec fitting[] = { { half, 4096 }, { half, 4096 } };
    CHECK(as_publication_offerv(p.publication, fitting, 2, NULL, NULL) > 8192);
    world_close_pair(&p);
}

/* Without a subscriber: what would end at the last position or beyond is refused for good, what ends before it for now. */
static void nobody_reads_at_the_last_position(world *w)
{
    static const uint8_t data[64];
    as_publication *alone =
        world_publication(w, "aeron:ipc?term-length=64k|init-term-id=7|term-id=-2147483642|term-offset=65440", true);
    CHECK_I64(as_publication_offer(alone, data, 32), AS_NOT_CONNECTED);
    CHECK_I64(as_publication_offer(alone, data, 33), AS_MAX_POSITION_EXCEEDED);
    CHECK_I64(as_publication_offer(alone, data, 64), AS_MAX_POSITION_EXCEEDED);
    as_publication_close(alone);
}

int main(void)
{
    RUN_IN_WORLD(lengths_out_of_range);
    RUN_IN_WORLD(nobody_reads_at_the_last_position);
    return 0;
}
