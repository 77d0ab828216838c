/* Goal: cnc.dat is made as a stock driver makes it, opened only when complete and of a known version, and shows whether its
 * driver lives. Method: golden cnc.dat; a file with single header fields damaged; an injected clock. Spec: 01 §1.4, §2. */
#include "shm/cnc.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shm/ring_mpsc.h"
#include "support.h"

static const asi_cnc_params PARAMS = {
    .lengths = { .to_driver = 65536 + 768, .to_clients = 65536 + 128, .counters_metadata = 4 * 65536, .counters_values = 65536,
        .error_log = 65536 },
    .client_liveness_timeout_ns = 10000000000LL,
    .start_timestamp_ms = 1795190415000LL,
    .pid = 4711,
    .file_page_size = 4096,
};

typedef struct fake_clock
{
    int64_t now_ms;
    int64_t step_ms; /* added at each reading */
} fake_clock;

static int64_t fake_ms(void *context)
{
    fake_clock *clock = context;
    clock->now_ms += clock->step_ms;
    return clock->now_ms;
}

static asi_clock clock_of(fake_clock *fake)
{
    return (asi_clock){ .epoch_ms = fake_ms, .nano_time = fake_ms, .context = fake };
}

static void computes_lengths(void)
{
    const asi_cnc_lengths defaults = { 1049344, 1048704, 33554432, 8388608, 4194304 };
    CHECK_I64(asi_cnc_file_length(&defaults, 4096), 48238592);
    const asi_cnc_lengths good = PARAMS.lengths;
    CHECK(asi_cnc_file_length(&good, 4096) > 0);
    static const struct { int field; int32_t value; } BAD[] = {
        { 0, 0 }, { 0, 768 }, { 0, -768 }, { 0, 65536 }, { 0, INT32_MIN }, { 1, 128 }, { 1, 65536 }, { 1, INT32_MIN }, { 2, 0 },
        { 2, 4 * 65536 - 8 }, { 2, 4 * 65536 + 1 }, { 3, 0 }, { 3, -128 }, { 3, 65536 - 64 }, { 4, 0 }, { 4, -8 }, { 4, INT32_MAX },
        { 2, INT32_MAX - 7 }
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        asi_cnc_lengths lengths = good;
        ((int32_t *)&lengths)[BAD[i].field] = BAD[i].value;
        CHECK_I64(asi_cnc_file_length(&lengths, 4096), -1);
    }
    CHECK_I64(asi_cnc_file_length(&good, 0), -1);
    CHECK_I64(asi_cnc_file_length(&good, 5000), -1);
    CHECK_I64(asi_cnc_file_length(&good, 2048), -1);
}

/* A process without permission to write, as another user's tool is: its exit code says what it could do. */
static void lets_other_users_look(void)
{
    if (0 != geteuid())
    {
        return; /* only root can become another user; owners are covered by the other cases */
    }
    const char *dir = scratch_folder();
    CHECK_I64(chmod(dir, 0755), 0);
    asi_cnc cnc;
    CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
    asi_cnc_publish(&cnc);
    const pid_t child = fork();
    if (0 == child)
    {
        asi_cnc reader;
        const bool is_other = 0 == setgid(65534) && 0 == setuid(65534);
        _exit(!is_other ? 1 : AS_E_STORAGE != asi_cnc_open_untrusted(&reader, dir) ? 2 :
            AS_OK != asi_cnc_open_read_only_untrusted(&reader, dir) ? 3 : reader.pid != 4711 ? 4 : 0);
    }
    int status = -1;
    CHECK_I64(waitpid(child, &status, 0), child);
    CHECK_I64(status, 0);
    asi_cnc_close(&cnc);
}

/* What messages would go through must be one's own, root's or a trusted user's, and no stranger's to write. */
static void is_used_of_its_owner_only(void)
{
    static const struct { uid_t dir_owner; uid_t owner; mode_t dir_mode; mode_t mode; asi_trust trust; as_result result; } ROWS[] = {
        { 0, 0, 0755, 0644, { -1, ASI_WRITERS_OWNER }, AS_OK },
        { 0, 0, 0775, 0664, { -1, ASI_WRITERS_GROUP }, AS_OK },
        { 0, 0, 0775, 0644, { -1, ASI_WRITERS_OWNER }, AS_E_USAGE },
        { 0, 0, 0755, 0664, { -1, ASI_WRITERS_OWNER }, AS_E_USAGE },
        { 0, 0, 0777, 0644, { -1, ASI_WRITERS_GROUP }, AS_E_USAGE },
        { 0, 0, 01777, 0644, { -1, ASI_WRITERS_GROUP }, AS_OK },
        { 0, 0, 01777, 0666, { -1, ASI_WRITERS_GROUP }, AS_E_USAGE },
        { 0, 0, 0777, 0666, { -1, ASI_WRITERS_ALL }, AS_OK },
        { 65534, 0, 0755, 0644, { -1, ASI_WRITERS_GROUP }, AS_E_USAGE },
        { 0, 65534, 0755, 0644, { -1, ASI_WRITERS_GROUP }, AS_E_USAGE },
        { 65534, 65534, 0755, 0644, { 65534, ASI_WRITERS_GROUP }, AS_OK },
        { 65534, 65534, 0755, 0644, { 1, ASI_WRITERS_GROUP }, AS_E_USAGE },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        if (0 != geteuid() && (0 != ROWS[i].owner || 0 != ROWS[i].dir_owner))
        {
            continue; /* only root can give files away */
        }
        char file[SCRATCH_CAPACITY + 16];
        asi_cnc cnc;
        asi_cnc reader;
        const char *dir = scratch_folder();
        snprintf(file, sizeof(file), "%s/" ASI_CNC_FILE, dir);
        CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
        asi_cnc_publish(&cnc);
        CHECK(0 == chmod(file, ROWS[i].mode) && 0 == chmod(dir, ROWS[i].dir_mode));
        CHECK(0 != geteuid() || (0 == chown(file, ROWS[i].owner, 0) && 0 == chown(dir, ROWS[i].dir_owner, 0)));
        CHECK_I64(asi_cnc_open_own_untrusted(&reader, dir, &ROWS[i].trust), ROWS[i].result);
        if (AS_OK == ROWS[i].result)
        {
            CHECK_I64(reader.pid, 4711);
            asi_cnc_close(&reader);
        }
        else
        {
            CHECK(NULL != strstr(as_error_text(), "aeron.spark.dir."));
        }
        asi_cnc_close(&cnc);
    }
}

/* Neither as the directory nor as the file. */
static void is_not_used_through_a_link(void)
{
    char dir[SCRATCH_CAPACITY];
    char other[SCRATCH_CAPACITY];
    char link[SCRATCH_CAPACITY + 16];
    char target[SCRATCH_CAPACITY + 16];
    asi_cnc cnc;
    asi_cnc reader;
    const asi_trust trust = { .owner = -1, .writers = ASI_WRITERS_ALL };
    scratch_create(dir);
    scratch_create(other);
    CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
    asi_cnc_publish(&cnc);
    snprintf(target, sizeof(target), "%s/" ASI_CNC_FILE, dir);
    snprintf(link, sizeof(link), "%s/" ASI_CNC_FILE, other);
    CHECK_I64(symlink(target, link), 0);
    CHECK_I64(asi_cnc_open_own_untrusted(&reader, other, &trust), AS_E_STORAGE);
    CHECK_I64(asi_cnc_open_read_only_untrusted(&reader, other), AS_E_STORAGE);
    snprintf(link, sizeof(link), "%s/link", other);
    CHECK_I64(symlink(dir, link), 0);
    CHECK_I64(asi_cnc_open_own_untrusted(&reader, link, &trust), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "symbolic link") && NULL != strstr(as_error_text(), dir));
    snprintf(link, sizeof(link), "%s/link//", other);
    CHECK_I64(asi_cnc_open_own_untrusted(&reader, link, &trust), AS_E_USAGE);
    CHECK_I64(asi_cnc_open_own_untrusted(&reader, dir, &trust), AS_OK);
    asi_cnc_close(&reader);
    asi_cnc_close(&cnc);
    scratch_delete(dir);
    scratch_delete(other);
}

static void is_ready_only_when_published(void)
{
    const char *dir = scratch_folder();
    asi_cnc cnc;
    asi_cnc reader;
    CHECK_I64(asi_cnc_open_untrusted(&reader, dir), AS_AGAIN);
    CHECK_I64(as_error_code(), ENOENT);
    CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
    CHECK_I64(asi_cnc_open_untrusted(&reader, dir), AS_AGAIN);
    CHECK_I64(as_error_code(), EAGAIN);
    asi_cnc_publish(&cnc);
    CHECK_I64(asi_cnc_open_untrusted(&reader, dir), AS_OK);
    CHECK_I64(reader.version, ASI_CNC_VERSION);
    CHECK_I64(reader.pid, 4711);
    CHECK_I64(reader.start_timestamp_ms, PARAMS.start_timestamp_ms);
    CHECK_I64(reader.client_liveness_timeout_ns, PARAMS.client_liveness_timeout_ns);
    CHECK_I64(reader.file_page_size, 4096);
    CHECK(0 == memcmp(&reader.lengths, &PARAMS.lengths, sizeof(reader.lengths)));
    CHECK_I64(reader.to_clients - reader.map.base, 128 + 65536 + 768);
    CHECK_I64(reader.error_log - reader.to_clients, 65536 + 128 + 5 * 65536);
    CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_E_STORAGE);
    asi_cnc_close(&reader);
    asi_cnc_close(&cnc);
    asi_cnc_close(&cnc);
}

static void writes_the_header_of_a_stock_driver(void)
{
    char stock_dir[SCRATCH_CAPACITY];
    char dir[SCRATCH_CAPACITY];
    char path[SCRATCH_CAPACITY + 16];
    scratch_create(stock_dir);
    scratch_create(dir);
    snprintf(path, sizeof(path), "%s/%s", stock_dir, ASI_CNC_FILE);
    golden_unpack("shm/c-driver-cnc.sparse", path);
    asi_cnc stock;
    CHECK_I64(asi_cnc_open_untrusted(&stock, stock_dir), AS_OK);
    CHECK_I64(stock.pid, 14192);
    CHECK_I64(stock.lengths.counters_metadata, 4194304);
    CHECK(asi_cnc_driver_heartbeat(&stock) > stock.start_timestamp_ms);
    const asi_cnc_params params = {
        .lengths = stock.lengths,
        .client_liveness_timeout_ns = stock.client_liveness_timeout_ns,
        .start_timestamp_ms = stock.start_timestamp_ms,
        .pid = stock.pid,
        .file_page_size = stock.file_page_size,
    };
    asi_cnc ours;
    CHECK_I64(asi_cnc_create(&ours, dir, &params), AS_OK);
    asi_cnc_publish(&ours);
    CHECK_I64(ours.map.length, stock.map.length);
    CHECK(0 == memcmp(ours.map.base, stock.map.base, ASI_CNC_HEADER_LENGTH));
    asi_cnc_close(&ours);
    asi_cnc_close(&stock);
    scratch_delete(dir);
    scratch_delete(stock_dir);
}

static void refuses_foreign_headers(void)
{
    static const struct { int64_t offset; int32_t value; as_result result; const char *text; } ROWS[] = {
        { 0, 0x010200, AS_E_DATA, "version 1.2.0" },
        { 0, 0x000100, AS_E_DATA, "version 0.1.0" },
        { 0, 0x000203, AS_OK, NULL },
        { 0, 0x000300, AS_OK, NULL },
        { 0, -1, AS_E_DATA, "version 255.255.255" },
        { 4, 0, AS_E_DATA, "do not fit" },
        { 4, INT32_MAX, AS_E_DATA, "do not fit" },
        { 4, 2 * 65536 + 768, AS_E_DATA, "do not fit" },
        { 8, -1, AS_E_DATA, "do not fit" },
        { 12, 65536, AS_E_DATA, "do not fit" },
        { 16, 65536 + 128, AS_E_DATA, "do not fit" },
        { 20, 65536 * 2, AS_E_DATA, "do not fit" },
        { 48, 0, AS_OK, NULL },
        { 48, 12345, AS_E_DATA, "do not fit" },
    };
    char path[SCRATCH_CAPACITY + 16];
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const char *dir = scratch_folder();
        asi_cnc cnc;
        CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
        asi_cnc_publish(&cnc);
        asi_put_i32(cnc.map.base + ROWS[i].offset, ROWS[i].value);
        asi_cnc reader;
        CHECK_I64(asi_cnc_open_untrusted(&reader, dir), ROWS[i].result);
        if (AS_OK == ROWS[i].result)
        {
            asi_cnc_close(&reader);
        }
        else
        {
            CHECK(NULL != strstr(as_error_text(), ROWS[i].text));
            CHECK(NULL != strstr(as_error_text(), "pid 4711"));
        }
        snprintf(path, sizeof(path), "%s/%s", dir, ASI_CNC_FILE);
        asi_cnc_close(&cnc);
        CHECK_I64(truncate(path, 128), 0);
        CHECK_I64(asi_cnc_open_untrusted(&reader, dir), AS_AGAIN);
    }
}

static void set_heartbeat(asi_cnc *cnc, int64_t epoch_ms)
{
    asi_ring_mpsc ring;
    CHECK_I64(asi_ring_mpsc_init(&ring, cnc->to_driver, cnc->lengths.to_driver), AS_OK);
    asi_ring_mpsc_set_consumer_heartbeat(&ring, epoch_ms);
    CHECK_I64(asi_cnc_driver_heartbeat(cnc), epoch_ms);
}

static void tells_whether_the_driver_lives(void)
{
    const char *dir = scratch_folder();
    fake_clock fake = { .now_ms = 100000 };
    const asi_clock clock = clock_of(&fake);
    bool active = true;
    CHECK_I64(asi_cnc_is_driver_active(dir, 10000, &clock, &active), AS_OK);
    CHECK(!active);

    asi_cnc cnc;
    CHECK_I64(asi_cnc_create(&cnc, dir, &PARAMS), AS_OK);
    fake.step_ms = 4000; /* so that waiting for the version comes to its deadline */
    active = true;
    CHECK_I64(asi_cnc_is_driver_active(dir, 10000, &clock, &active), AS_OK);
    CHECK(!active);
    asi_cnc_publish(&cnc);

    static const struct { int64_t heartbeat_ms; bool active; } ROWS[] = {
        { 0, false }, { -1, false }, { INT64_MIN, false }, { 489999, false }, { 490000, true }, { 500000, true },
        { 500001, true }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        fake = (fake_clock){ .now_ms = 500000 };
        set_heartbeat(&cnc, ROWS[i].heartbeat_ms);
        CHECK_I64(asi_cnc_is_driver_active(dir, 10000, &clock, &active), AS_OK);
        CHECK_I64(active, ROWS[i].active);
    }
    asi_put_i32(cnc.map.base, 0x010000); /* of another major version: not ours to judge */
    CHECK_I64(asi_cnc_is_driver_active(dir, 10000, &clock, &active), AS_OK);
    CHECK(!active);
    asi_cnc_close(&cnc);
}

int main(void)
{
    RUN(computes_lengths);
    RUN(lets_other_users_look);
    RUN(is_used_of_its_owner_only);
    RUN(is_not_used_through_a_link);
    RUN(is_ready_only_when_published);
    RUN(writes_the_header_of_a_stock_driver);
    RUN(refuses_foreign_headers);
    RUN(tells_whether_the_driver_lives);
    return 0;
}
