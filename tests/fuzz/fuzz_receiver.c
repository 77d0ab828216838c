/* Datagrams from anyone to subscriptions: unicast, multi-destination, unreliable, cubic, with timestamps. */
#include "driver_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_world world;
    CHECK(fuzz_world_open(&world, NULL, NULL));
    const char *destination = "aeron:udp?endpoint=127.0.0.1:24003";
    fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 10, FUZZ_STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 11, FUZZ_STREAM, "aeron:udp?endpoint=127.0.0.1:24001|cc=cubic|group=true|"
        "session-id=123456|gtag=5|channel-rcv-ts-offset=reserved");
    fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 12, FUZZ_STREAM, "aeron:udp?endpoint=127.0.0.1:24002|reliable=false|tether=false|"
        "control=127.0.0.1:24102|control-mode=dynamic|channel-rcv-ts-offset=0");
    fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 13, FUZZ_STREAM, "aeron:udp?control-mode=manual");
    uint8_t message[128];
    const asi_cmd_destination command = { { 1, 14 }, 13, (int32_t)strlen(destination) };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), destination, strlen(destination));
    rig_send(&world.rig, ASI_CMD_ADD_RCV_DESTINATION, message, (int64_t)(sizeof(command) + strlen(destination)));
    fuzz_world_run(&world, data, size);
    fuzz_world_close(&world);
    return 0;
}
