/* Commands of hostile clients: any bytes in the to-driver ring, among a few datagrams and passing time. */
#include "driver_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_world world;
    CHECK(fuzz_world_open(&world, NULL, NULL));
    fuzz_world_run(&world, data, size);
    fuzz_world_close(&world);
    return 0;
}
