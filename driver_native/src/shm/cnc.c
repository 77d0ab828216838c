/* Creates cnc.dat, opens it with checks, and detects whether its driver is alive; see cnc.h. */
#include "shm/cnc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/idle.h"
#include "shm/broadcast.h"
#include "shm/counters.h"
#include "shm/ring_mpsc.h"

#define PAGE_MIN_LENGTH 4096
#define PAGE_MAX_LENGTH (1024 * 1024 * 1024)
#define VERSION_POLL_INTERVAL_NS 1000000

typedef struct cnc_header
{
    int32_t version;                    /* 0..3, release on publish, acquire on read */
    int32_t to_driver_length;           /* 4..7 */
    int32_t to_clients_length;          /* 8..11 */
    int32_t counters_metadata_length;   /* 12..15 */
    int32_t counters_values_length;     /* 16..19 */
    int32_t error_log_length;           /* 20..23 */
    int64_t client_liveness_timeout_ns; /* 24..31 */
    int64_t start_timestamp_ms;         /* 32..39 */
    int64_t pid;                        /* 40..47 */
    int32_t file_page_size;             /* 48..51; 0 in files of older drivers */
    uint8_t pad[ASI_CNC_HEADER_LENGTH - 52];
} cnc_header;

AS_STATIC_ASSERT(offsetof(cnc_header, client_liveness_timeout_ns) == 24, "Spec: 01 §2.2");
AS_STATIC_ASSERT(offsetof(cnc_header, file_page_size) == 48, "Spec: 01 §2.2");
AS_STATIC_ASSERT(sizeof(cnc_header) == ASI_CNC_HEADER_LENGTH, "Spec: 01 §2.2");

static int major_of(int32_t version) { return (version >> 16) & 0xFF; }
static int minor_of(int32_t version) { return (version >> 8) & 0xFF; }
static int patch_of(int32_t version) { return version & 0xFF; }

int64_t asi_cnc_file_length(const asi_cnc_lengths *lengths, int32_t file_page_size)
{
    const int64_t ring = (int64_t)lengths->to_driver - ASI_RING_TRAILER_LENGTH;
    const int64_t broadcast = (int64_t)lengths->to_clients - ASI_BROADCAST_TRAILER_LENGTH;
    const int64_t value_length = (int64_t)sizeof(asi_counter_value);
    if (!asi_is_power_of_two(ring) || ring < 8 || !asi_is_power_of_two(broadcast) || broadcast < 8 ||
        lengths->counters_values < value_length || 0 != lengths->counters_values % value_length ||
        lengths->counters_metadata < (int64_t)lengths->counters_values * 4 || 0 != lengths->counters_metadata % 8 ||
        lengths->error_log <= 0 ||
        !asi_is_power_of_two(file_page_size) || file_page_size < PAGE_MIN_LENGTH || file_page_size > PAGE_MAX_LENGTH)
    {
        return -1;
    }
    const int64_t total = asi_align_i64((int64_t)ASI_CNC_HEADER_LENGTH + lengths->to_driver + lengths->to_clients +
        lengths->counters_metadata + lengths->counters_values + lengths->error_log, file_page_size);
    return total <= INT32_MAX ? total : -1;
}

static as_result cnc_path(char *path, size_t capacity, const char *aeron_dir)
{
    const int length = snprintf(path, capacity, "%s/%s", aeron_dir, ASI_CNC_FILE);
    return length > 0 && (size_t)length < capacity ? AS_OK :
        asi_fail(AS_E_USAGE, ENAMETOOLONG, "Aeron directory name is longer than %zu bytes", capacity - 1);
}

static void bind_sections(asi_cnc *cnc)
{
    cnc->to_driver = cnc->map.base + ASI_CNC_HEADER_LENGTH;
    cnc->to_clients = cnc->to_driver + cnc->lengths.to_driver;
    cnc->counters_metadata = cnc->to_clients + cnc->lengths.to_clients;
    cnc->counters_values = cnc->counters_metadata + cnc->lengths.counters_metadata;
    cnc->error_log = cnc->counters_values + cnc->lengths.counters_values;
}

static cnc_header *header_of(const asi_cnc *cnc) { return (cnc_header *)(void *)cnc->map.base; }

as_result asi_cnc_create(asi_cnc *cnc, const char *aeron_dir, const asi_cnc_params *params)
{
    char path[AS_PATH_MAX];
    as_result result = cnc_path(path, sizeof(path), aeron_dir);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t file_length = asi_cnc_file_length(&params->lengths, params->file_page_size);
    if (file_length < 0)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "%s: buffer lengths or page size are out of range", path);
    }
    asi_cnc created = {
        .lengths = params->lengths,
        .client_liveness_timeout_ns = params->client_liveness_timeout_ns,
        .start_timestamp_ms = params->start_timestamp_ms,
        .pid = params->pid,
        .version = ASI_CNC_VERSION,
        .file_page_size = params->file_page_size,
    };
    result = asi_map_create(&created.map, path, file_length, true);
    if (AS_OK != result)
    {
        return result;
    }
    bind_sections(&created);
    cnc_header *header = header_of(&created);
    header->to_driver_length = params->lengths.to_driver;
    header->to_clients_length = params->lengths.to_clients;
    header->counters_metadata_length = params->lengths.counters_metadata;
    header->counters_values_length = params->lengths.counters_values;
    header->error_log_length = params->lengths.error_log;
    header->client_liveness_timeout_ns = params->client_liveness_timeout_ns;
    header->start_timestamp_ms = params->start_timestamp_ms;
    header->pid = params->pid;
    header->file_page_size = params->file_page_size;
    *cnc = created;
    return AS_OK;
}

void asi_cnc_publish(asi_cnc *cnc)
{
    asi_store_release_i32(&header_of(cnc)->version, ASI_CNC_VERSION);
    asi_map_sync(&cnc->map);
}

/* Spec: 01 §2.1 - any 0.x with x >= 2 is compatible. */
static as_result check_header_untrusted(asi_cnc *cnc, const char *path)
{
    if (major_of(cnc->version) != major_of(ASI_CNC_VERSION) || minor_of(cnc->version) < minor_of(ASI_CNC_VERSION))
    {
        return asi_fail(AS_E_DATA, 0, "%s is of CnC version %d.%d.%d (driver pid %" PRId64 "), this program needs %d.%d", path,
            major_of(cnc->version), minor_of(cnc->version), patch_of(cnc->version), cnc->pid, major_of(ASI_CNC_VERSION),
            minor_of(ASI_CNC_VERSION));
    }
    const int64_t needed = asi_cnc_file_length(&cnc->lengths, cnc->file_page_size);
    if (needed < 0 || needed > cnc->map.length)
    {
        return asi_fail(AS_E_DATA, 0, "%s of %" PRId64 " bytes (driver pid %" PRId64 ") has buffer lengths that do not fit it",
            path, cnc->map.length, cnc->pid);
    }
    return AS_OK;
}

static as_result open_cnc_untrusted(asi_cnc *cnc, const char *aeron_dir, const asi_trust *trust, bool writable)
{
    char path[AS_PATH_MAX];
    as_result result = cnc_path(path, sizeof(path), aeron_dir);
    if (AS_OK != result)
    {
        return result;
    }
    asi_cnc opened = { 0 };
    result = NULL == trust ? asi_map_open(&opened.map, path, ASI_CNC_HEADER_LENGTH + 1, writable) :
        asi_map_open_in(&opened.map, aeron_dir, ASI_CNC_FILE, trust, ASI_CNC_HEADER_LENGTH + 1, writable);
    if (AS_OK != result)
    {
        return result;
    }
    const cnc_header *header = header_of(&opened);
    opened.version = asi_load_acquire_i32(&header->version);
    if (0 == opened.version)
    {
        asi_map_close(&opened.map);
        asi_fail(AS_E_STORAGE, EAGAIN, "%s is not ready: its driver is starting, or died while starting", path);
        return AS_AGAIN;
    }
    /* Copied once, then checked, because another process may change the file meanwhile. */
    opened.lengths = (asi_cnc_lengths){
        .to_driver = header->to_driver_length,
        .to_clients = header->to_clients_length,
        .counters_metadata = header->counters_metadata_length,
        .counters_values = header->counters_values_length,
        .error_log = header->error_log_length,
    };
    opened.client_liveness_timeout_ns = header->client_liveness_timeout_ns;
    opened.start_timestamp_ms = header->start_timestamp_ms;
    opened.pid = header->pid;
    opened.file_page_size = 0 != header->file_page_size ? header->file_page_size : PAGE_MIN_LENGTH;
    result = check_header_untrusted(&opened, path);
    if (AS_OK != result)
    {
        asi_map_close(&opened.map);
        return result;
    }
    bind_sections(&opened);
    *cnc = opened;
    return AS_OK;
}

as_result asi_cnc_open_untrusted(asi_cnc *cnc, const char *aeron_dir) { return open_cnc_untrusted(cnc, aeron_dir, NULL, true); }

as_result asi_cnc_open_own_untrusted(asi_cnc *cnc, const char *aeron_dir, const asi_trust *trust)
{
    return open_cnc_untrusted(cnc, aeron_dir, trust, true);
}

as_result asi_cnc_open_read_only_untrusted(asi_cnc *cnc, const char *aeron_dir)
{
    return open_cnc_untrusted(cnc, aeron_dir, NULL, false);
}

bool asi_cnc_is_at(const asi_cnc *cnc, const char *aeron_dir)
{
    char path[AS_PATH_MAX];
    return AS_OK == cnc_path(path, sizeof(path), aeron_dir) && asi_map_is_at(&cnc->map, path);
}

void asi_cnc_close(asi_cnc *cnc)
{
    asi_map_close(&cnc->map);
    *cnc = (asi_cnc){ 0 };
}

int64_t asi_cnc_driver_heartbeat(const asi_cnc *cnc)
{
    asi_ring_mpsc ring;
    return AS_OK == asi_ring_mpsc_init(&ring, cnc->to_driver, cnc->lengths.to_driver) ?
        asi_ring_mpsc_consumer_heartbeat(&ring) : 0;
}

as_result asi_cnc_is_driver_active(const char *aeron_dir, int64_t driver_timeout_ms, const asi_clock *clock, bool *is_active)
{
    asi_idle idle = { .kind = ASI_IDLE_SLEEP, .min_park_ns = VERSION_POLL_INTERVAL_NS };
    const int64_t deadline_ms = asi_clock_ms(clock) + driver_timeout_ms;
    asi_cnc cnc;
    as_result result = asi_cnc_open_untrusted(&cnc, aeron_dir);
    while (AS_AGAIN == result && EAGAIN == as_error_code() && asi_clock_ms(clock) < deadline_ms)
    {
        asi_idle_cycle(&idle, 0);
        result = asi_cnc_open_untrusted(&cnc, aeron_dir);
    }
    if (AS_AGAIN == result || AS_E_DATA == result)
    {
        *is_active = false;
        return AS_OK;
    }
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t heartbeat_ms = asi_cnc_driver_heartbeat(&cnc);
    *is_active = heartbeat_ms > 0 && asi_clock_ms(clock) - heartbeat_ms <= driver_timeout_ms;
    asi_cnc_close(&cnc);
    return AS_OK;
}
