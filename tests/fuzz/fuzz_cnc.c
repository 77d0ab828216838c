/* A directory of a driver that is not ours: CnC file, counters, distinct error log and log buffers, overwritten anywhere that
 * matters; read as tools and clients do. */
#include "aeron_spark/as_client.h"
#include "fuzz.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/log_layout.h"
#include "shm/ring_mpsc.h"

#define PAGE 4096
#define HEAD 256 /* of each section */
#define MAX_PATCHES 16

static void on_error_entry(
    void *context, int32_t count, int64_t first_ms, int64_t last_ms, const char *text, int64_t text_length)
{
    int64_t *sum = context;
    *sum += count + (first_ms & 1) + (last_ms & 1);
    for (int64_t i = 0; i < text_length; i++)
    {
        *sum += text[i];
    }
}

static void overwrite(fuzz_input *input, uint8_t *section, int64_t length)
{
    const int64_t at = fuzz_u16(input) % length;
    int64_t taken;
    uint8_t *bytes = fuzz_take(input, fuzz_u8(input), &taken);
    memcpy(section + at, bytes, (size_t)(taken < length - at ? taken : length - at));
    free(bytes);
}

static void make_directory(const char *dir, const char *log_path, fuzz_input *input)
{
    const asi_cnc_params params = {
        .lengths = { .to_driver = 65536 + ASI_RING_TRAILER_LENGTH, .to_clients = 65536 + ASI_BROADCAST_TRAILER_LENGTH,
            .counters_metadata = 4 * 65536, .counters_values = 65536, .error_log = 65536 },
        .client_liveness_timeout_ns = 1000000000,
        .start_timestamp_ms = 1700000000000,
        .pid = 1,
        .file_page_size = PAGE
    };
    asi_cnc cnc;
    asi_log log;
    CHECK_I64(asi_cnc_create(&cnc, dir, &params), AS_OK);
    asi_cnc_publish(&cnc);
    CHECK_I64(asi_log_create(&log, log_path, AS_TERM_MIN_LENGTH, PAGE), AS_OK);
    log.metadata->mtu_length = 1408;
    for (int k = 0; k < MAX_PATCHES && input->left > 0; k++)
    {
        switch (fuzz_u8(input) % 5)
        {
            case 0: overwrite(input, cnc.map.base, HEAD); break;
            case 1: overwrite(input, cnc.counters_metadata, 4096); break;
            case 2: overwrite(input, cnc.counters_values, 1024); break;
            case 3: overwrite(input, cnc.error_log, cnc.lengths.error_log); break;
            default: overwrite(input, (uint8_t *)log.metadata, sizeof(*log.metadata)); break;
        }
    }
    asi_cnc_close(&cnc);
    asi_log_close(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[SCRATCH_CAPACITY];
    char log_path[SCRATCH_CAPACITY + 16];
    fuzz_input input = { .at = data, .left = (int64_t)size };
    int64_t sum = 0;
    scratch_create(dir);
    snprintf(log_path, sizeof(log_path), "%s/1.logbuffer", dir);
    make_directory(dir, log_path, &input);
    as_inspector *inspector = NULL;
    if (AS_OK == as_inspector_open(dir, &inspector))
    {
        as_driver_info info;
        as_inspector_driver_info(inspector, &info);
        for (int32_t id = 0; id <= as_inspector_max_counter_id(inspector); id++)
        {
            as_counter_row row;
            (void)!as_inspector_counter(inspector, id, &row);
        }
        as_counter_row rows[3];
        int32_t next_id = 0;
        while (3 == as_inspector_counters(inspector, &next_id, rows, 3))
        {
        }
        (void)!as_inspector_errors(inspector, 0, on_error_entry, &sum);
        as_inspector_close(inspector);
    }
    asi_log log;
    if (AS_OK == asi_log_open_untrusted(&log, log_path, true))
    {
        for (int i = 0; i < ASI_LOG_PARTITION_COUNT; i++)
        {
            sum += log.terms[i][log.term_length - 1];
        }
        asi_log_close(&log);
    }
    scratch_delete(dir);
    return 0;
}
