/* Datagrams from anyone to the driver-to-driver name resolver. */
#include "driver_world.h"

static void adjust(asi_driver_settings *settings, void *context)
{
    (void)context;
    snprintf(settings->name_resolver, sizeof(settings->name_resolver), "driver");
    snprintf(settings->resolver_name, sizeof(settings->resolver_name), "ours");
    snprintf(settings->resolver_interface, sizeof(settings->resolver_interface), "127.0.0.1:8050");
    snprintf(settings->resolver_bootstrap, sizeof(settings->resolver_bootstrap), "localhost:8051");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_world world;
    CHECK(fuzz_world_open(&world, adjust, NULL));
    fuzz_world_run(&world, data, size);
    fuzz_world_close(&world);
    return 0;
}
