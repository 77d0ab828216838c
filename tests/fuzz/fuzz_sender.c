/* Control frames from anyone to publications: unicast, dynamic destinations with min flow control, tagged, response. */
#include "driver_world.h"

#define PUBLICATION "|session-id=123456|init-term-id=7|term-id=7|term-offset=0|term-length=64k"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_world world;
    CHECK(fuzz_world_open(&world, NULL, NULL));
    fuzz_world_add(&world, ASI_CMD_ADD_PUBLICATION, 10, FUZZ_STREAM, "aeron:udp?endpoint=127.0.0.1:24100" PUBLICATION);
    fuzz_world_add(&world, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 11, FUZZ_STREAM,
        "aeron:udp?control=127.0.0.1:24001|control-mode=dynamic|fc=min,t:2s|channel-snd-ts-offset=0" PUBLICATION);
    fuzz_world_add(&world, ASI_CMD_ADD_PUBLICATION, 12, FUZZ_STREAM,
        "aeron:udp?control=127.0.0.1:24002|control-mode=dynamic|fc=tagged,g:5/1|max-resend=2" PUBLICATION);
    fuzz_world_add(&world, ASI_CMD_ADD_PUBLICATION, 13, FUZZ_STREAM, "aeron:udp?control=127.0.0.1:24003|control-mode=response|"
        "response-correlation-id=prototype" PUBLICATION);
    fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 14, FUZZ_STREAM, "aeron:udp?control-mode=response|control=127.0.0.1:24103");
    fuzz_world_add(&world, ASI_CMD_ADD_PUBLICATION, 15, FUZZ_STREAM,
        "aeron:udp?endpoint=127.0.0.1:24101|response-correlation-id=14" PUBLICATION);
    fuzz_world_run(&world, data, size);
    fuzz_world_close(&world);
    return 0;
}
