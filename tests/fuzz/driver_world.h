/* A whole driver for fuzz targets: invoked, over a network in memory and a clock of its own, with a bare client. An input is a
 * sequence of steps, so that states behind several messages are reached: datagrams to its sockets, commands into its ring, time,
 * messages offered, positions that subscribers claim. At the end the driver must close, and the constants of every image's log must
 * be what they were: nothing was written outside the terms. */
#define _GNU_SOURCE
#ifndef AS_TESTS_FUZZ_DRIVER_WORLD_H
#define AS_TESTS_FUZZ_DRIVER_WORLD_H

#include <dirent.h>

#include "driver/rig.h"
#include "fuzz.h"
#include "net/fake_net.h"
#include "wire/frame.h"

#define FUZZ_SESSION 123456
#define FUZZ_STREAM 1001
#define FUZZ_PUBLICATIONS 8
#define FUZZ_MAX_STEPS 256
#define FUZZ_MAX_CYCLES 20

typedef struct fuzz_world
{
    test_rig rig;
    fake_net net;
    rig_publication publications[FUZZ_PUBLICATIONS];
    int32_t publication_count;
} fuzz_world;

static inline as_result fuzz_resolve(void *context, const char *name, const char *param, bool is_again, asi_address *address)
{
    (void)context;
    (void)is_again;
    if (0 != strcmp(name, "localhost"))
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "unknown host %s in %s", name, param);
    }
    *address = fake_address("127.0.0.1", 0);
    return AS_OK;
}

/* False when the settings are none a driver can be opened with. */
static inline bool fuzz_world_open(fuzz_world *world, void (*adjust)(asi_driver_settings *settings, void *context), void *context)
{
    memset(world, 0, sizeof(*world));
    world->rig.now_ns = RIG_SECOND;
    scratch_create(world->rig.dir);
    asi_driver_settings settings = rig_settings(world->rig.dir);
    settings.term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.term_buffer_sparse_file = true;
    settings.to_driver_buffer_length = 64 * 1024 + ASI_RING_TRAILER_LENGTH; /* small: files are made anew for each input */
    settings.to_clients_buffer_length = 64 * 1024 + ASI_BROADCAST_TRAILER_LENGTH;
    settings.counters_values_buffer_length = 64 * 1024;
    settings.error_buffer_length = 64 * 1024;
    settings.loss_report_length = 64 * 1024;
    if (NULL != adjust)
    {
        adjust(&settings, context);
    }
    asi_driver_dependencies dependencies = {
        .clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = &world->rig },
        .ops = fake_net_ops(&world->net),
        .resolver = { .resolve = fuzz_resolve }
    };
    asi_rand_seed(&dependencies.rand, 4711);
    if (AS_OK != asi_driver_open_with(&settings, &dependencies, rig_on_termination, &world->rig, &world->rig.driver))
    {
        scratch_delete(world->rig.dir);
        return false;
    }
    rig_attach(&world->rig);
    return true;
}

static inline void fuzz_check_logs(const char *aeron_dir)
{
    char path[2 * AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/images", aeron_dir);
    DIR *dir = opendir(path);
    for (struct dirent *entry = NULL == dir ? NULL : readdir(dir); NULL != entry; entry = readdir(dir))
    {
        asi_log log;
        if ('.' != entry->d_name[0])
        {
            snprintf(path, sizeof(path), "%s/images/%s", aeron_dir, entry->d_name);
            CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_OK);
            asi_log_close(&log);
        }
    }
    if (NULL != dir)
    {
        closedir(dir);
    }
}

static inline void fuzz_world_close(fuzz_world *world)
{
    fuzz_check_logs(world->rig.dir);
    for (int32_t i = 0; i < world->publication_count; i++)
    {
        asi_log_close(&world->publications[i].log);
    }
    rig_close(&world->rig);
    for (int32_t i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        CHECK(NULL == world->net.sockets[i]);
    }
}

/* Broadcasts are read away; publications are mapped as they come. */
static inline void fuzz_world_read(fuzz_world *world)
{
    test_rig *rig = &world->rig;
    for (as_result result = AS_OK; AS_AGAIN != result;)
    {
        result = asi_broadcast_receive(&rig->receiver, rig_on_message, &rig->last);
        const bool is_exclusive = ASI_RSP_EXCLUSIVE_PUBLICATION_READY == rig->last.type_id;
        if (AS_OK == result && (is_exclusive || ASI_RSP_PUBLICATION_READY == rig->last.type_id) &&
            world->publication_count < FUZZ_PUBLICATIONS)
        {
            rig_publication *publication = &world->publications[world->publication_count];
            char path[AS_PATH_MAX];
            memcpy(&publication->ready, rig->last.bytes, sizeof(publication->ready));
            snprintf(path, sizeof(path), "%.*s", publication->ready.log_file_name_length,
                (const char *)rig->last.bytes + sizeof(publication->ready));
            if (AS_OK != asi_log_open_untrusted(&publication->log, path, false))
            {
                continue; /* gone by now: its client timed out since */
            }
            world->publication_count++;
            asi_appender_init(&publication->appender, &publication->log, publication->ready.session_id,
                publication->ready.stream_id, is_exclusive);
            publication->limit = asi_counter_addr(&rig->counters, publication->ready.position_limit_counter_id);
        }
    }
}

/* A client's command that is as it should be: what a target begins with. */
static inline void fuzz_world_add(fuzz_world *world, int32_t type_id, int64_t correlation_id, int32_t stream_id, const char *channel)
{
    rig_send_add(&world->rig, type_id, 1, correlation_id, stream_id, channel);
    rig_cycle(&world->rig);
    fuzz_world_read(world);
}

/* Session and stream of a datagram become known ones, so that it gets past the tables. */
static inline void fuzz_aim(uint8_t *bytes, int64_t length)
{
    const uint16_t type = length >= 8 ? asi_get_u16(bytes + 6) : UINT16_MAX;
    const int64_t at = ASI_FRAME_DATA == type || ASI_FRAME_PAD == type || ASI_FRAME_SETUP == type ? 12 : 8;
    if (UINT16_MAX != type && ASI_FRAME_RESOLUTION != type && length >= at + 8)
    {
        asi_put_i32(bytes + at, FUZZ_SESSION);
        asi_put_i32(bytes + at + 4, FUZZ_STREAM);
    }
}

static inline void fuzz_step_datagram(fuzz_world *world, fuzz_input *input)
{
    const uint8_t target = fuzz_u8(input);
    const uint8_t how = fuzz_u8(input);
    asi_address source = fake_address(0 == (how & 1) ? "127.0.0.1" : "10.1.2.3", (uint16_t)(24100 + (how >> 1 & 3)));
    if (0 != (how & 8))
    {
        source = asi_address_any(AF_INET6);
        source.v6.sin6_addr.s6_addr[15] = 1;
        asi_address_set_port(&source, 24100);
    }
    int64_t length;
    uint8_t *bytes = fuzz_take(input, fuzz_u16(input), &length);
    if (0 != (how & 0x80))
    {
        fuzz_aim(bytes, length);
    }
    const asi_outgoing datagram = { .bytes = bytes, .length = (int32_t)length };
    asi_udp_socket *socket = world->net.sockets[target % FAKE_NET_SOCKETS];
    if (NULL != socket)
    {
        fake_put(socket, &datagram, &source);
    }
    free(bytes);
}

/* Channels that ask for gigabytes on purpose take them: that is no finding. */
static inline bool fuzz_is_greedy(const uint8_t *bytes, int64_t length)
{
    return NULL != memmem(bytes, (size_t)length, "sparse", 6);
}

static inline void fuzz_step_command(fuzz_world *world, fuzz_input *input)
{
    const int32_t type_id = 1 + (int16_t)fuzz_u16(input);
    int64_t length;
    uint8_t *bytes = fuzz_take(input, fuzz_u16(input), &length);
    if (!fuzz_is_greedy(bytes, length) && type_id > 0)
    {
        (void)!asi_ring_mpsc_write(&world->rig.ring, type_id, bytes, length);
    }
    free(bytes);
}

/* What subscribers say they have read: nearly everything, or nonsense. */
static inline void fuzz_step_position(fuzz_world *world, fuzz_input *input)
{
    const int32_t id = fuzz_u8(input);
    const int64_t value = (int64_t)fuzz_number(input, 8);
    asi_counters *counters = &world->rig.counters;
    const int32_t received = asi_counters_find(counters, ASI_COUNTER_TYPE_RECEIVER_POSITION, NULL, NULL);
    for (int32_t i = ASI_SYSTEM_COUNTER_COUNT; i < 128; i++)
    {
        asi_counter_metadata *metadata = &((asi_counter_metadata *)(void *)counters->metadata)[i];
        if (ASI_COUNTER_TYPE_SUBSCRIBER_POSITION == metadata->type_id && (0 == id || i == id))
        {
            *asi_counter_addr(counters, i) = 0 == value && received >= 0 ? *asi_counter_addr(counters, received) : value;
        }
    }
}

static inline void fuzz_step_time(fuzz_world *world, fuzz_input *input)
{
    const int64_t duration_ns = fuzz_u16(input) * RIG_MS;
    const int32_t cycles = fuzz_u8(input) % FUZZ_MAX_CYCLES + 1;
    for (int32_t i = 0; i < cycles; i++)
    {
        world->rig.now_ns += duration_ns / cycles;
        rig_cycle(&world->rig);
    }
}

static inline void fuzz_world_run(fuzz_world *world, const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    for (int step = 0; step < FUZZ_MAX_STEPS && input.left > 0; step++)
    {
        switch (fuzz_u8(&input) % 6)
        {
            case 0: fuzz_step_datagram(world, &input); break;
            case 1: fuzz_step_time(world, &input); break;
            case 2: fuzz_step_command(world, &input); break;
            case 3: fuzz_step_position(world, &input); break;
            case 4:
            {
                const int32_t index = fuzz_u8(&input) % FUZZ_PUBLICATIONS;
                const int64_t length = fuzz_u16(&input) % AS_TERM_MIN_LENGTH / 8;
                if (index < world->publication_count)
                {
                    (void)rig_offer(&world->publications[index], length);
                }
                break;
            }
            default: rig_cycle(&world->rig); break;
        }
        fuzz_world_read(world);
    }
    rig_cycle(&world->rig);
    rig_cycle(&world->rig);
    fuzz_world_read(world);
}

#endif
