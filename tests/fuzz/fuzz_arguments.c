/* Arguments of the csv_table resolver, of loss interceptors, of the gossip resolver's neighbours and of flow control suppliers: a
 * driver opens with them or says what is wrong; then it lives through a few seconds of a stream. */
#include "driver_world.h"

typedef struct arguments
{
    uint8_t kind;
    char *text;
} arguments;

static void set(char *to, size_t capacity, const char *text) { snprintf(to, capacity, "%s", text); }

static void adjust(asi_driver_settings *settings, void *context)
{
    static const char *const LOSS[] = { "loss", "fixed-loss", "multi-gap-loss", "loss,multi-gap-loss" };
    const arguments *given = context;
    switch (given->kind % 6)
    {
        case 0:
            set(settings->name_resolver, sizeof(settings->name_resolver), "csv_table");
            set(settings->name_resolver_args, sizeof(settings->name_resolver_args), given->text);
            break;
        case 1:
            set(settings->name_resolver, sizeof(settings->name_resolver), "driver");
            set(settings->resolver_name, sizeof(settings->resolver_name), "ours");
            set(settings->resolver_interface, sizeof(settings->resolver_interface), "127.0.0.1:8050");
            set(settings->resolver_bootstrap, sizeof(settings->resolver_bootstrap), given->text);
            break;
        case 2:
            set(settings->incoming_interceptors, sizeof(settings->incoming_interceptors), given->text);
            break;
        default:
            set(settings->incoming_interceptors, sizeof(settings->incoming_interceptors), LOSS[given->kind / 6 % 4]);
            set(settings->loss_args, sizeof(settings->loss_args), given->text);
            set(settings->fixed_loss_args, sizeof(settings->fixed_loss_args), given->text);
            set(settings->multi_gap_loss_args, sizeof(settings->multi_gap_loss_args), given->text);
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_world world;
    fuzz_input input = { .at = data, .left = (int64_t)size };
    arguments given = { .kind = fuzz_u8(&input) };
    given.text = fuzz_text(input.at, input.left);
    if (fuzz_world_open(&world, adjust, &given))
    {
        fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 10, FUZZ_STREAM, "aeron:udp?endpoint=a:24000");
        fuzz_world_add(&world, ASI_CMD_ADD_SUBSCRIPTION, 11, FUZZ_STREAM, "aeron:udp?endpoint=127.0.0.1:24001");
        fuzz_world_add(&world, ASI_CMD_ADD_PUBLICATION, 12, FUZZ_STREAM,
            "aeron:udp?endpoint=127.0.0.1:24001|init-term-id=7|term-id=7|term-offset=0");
        for (int i = 0; i < 20; i++)
        {
            if (world.publication_count > 0)
            {
                (void)rig_offer(&world.publications[0], 1000);
            }
            world.rig.now_ns += 100 * RIG_MS;
            rig_cycle(&world.rig);
        }
        fuzz_world_close(&world);
    }
    free(given.text);
    return 0;
}
