/* Which processes may own an Aeron directory, what a start makes of it, what an end leaves. Spec: 01 §1.3-1.6.
 *
 * Method: real drivers on real directories; a CnC file with an old heartbeat plays a dead one.
 * Spec: 01 §1.2, 05 §14. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

static void write_file(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    CHECK(NULL != file && fputs("left over", file) >= 0 && 0 == fclose(file));
}

#define LEFT_LOG "images/-7.logbuffer"

static void make_folder(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    CHECK(0 == mkdir(path, 0755) || EEXIST == errno);
}

static bool has(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return asi_file_exists(path) || asi_dir_exists(path);
}

/* Sibling files "<dir>-...-error.log"; deletes them and returns how many there were. */
static int delete_saved_errors(const char *dir)
{
    const char *name = strrchr(dir, '/') + 1;
    int count = 0;
    DIR *parent = opendir("/dev/shm");
    CHECK(NULL != parent);
    for (struct dirent *entry = readdir(parent); NULL != entry; entry = readdir(parent))
    {
        if (0 == strncmp(entry->d_name, name, strlen(name)) && NULL != strstr(entry->d_name, "-error.log"))
        {
            char path[300];
            snprintf(path, sizeof(path), "/dev/shm/%s", entry->d_name);
            CHECK(0 == unlink(path));
            count++;
        }
    }
    closedir(parent);
    return count;
}

static as_result open_driver(const asi_driver_settings *settings, as_driver **driver)
{
    asi_rand rand;
    asi_rand_seed(&rand, 1);
    return asi_driver_open(settings, asi_clock_system(), rand, NULL, NULL, driver);
}

#define SAID_CAPACITY 2048

/* The same, with its standard error. */
static as_result open_driver_hearing(const asi_driver_settings *settings, as_driver **driver, char *said)
{
    FILE *heard = tmpfile();
    const int own = dup(STDERR_FILENO);
    CHECK(NULL != heard && own >= 0 && dup2(fileno(heard), STDERR_FILENO) >= 0);
    const as_result result = open_driver(settings, driver);
    CHECK(dup2(own, STDERR_FILENO) >= 0 && 0 == close(own));
    rewind(heard);
    said[fread(said, 1, SAID_CAPACITY - 1, heard)] = '\0';
    CHECK(0 == fclose(heard));
    return result;
}

typedef enum left_behind
{
    LEFT_NOTHING,      /* the directory does not even exist */
    LEFT_EMPTY,        /* it is empty */
    LEFT_STRANGE_FILE, /* other content, no cnc.dat */
    LEFT_STRANGE_LOG,  /* the same below publications/ */
    LEFT_SHORT_CNC,
    LEFT_ZERO_VERSION,
    LEFT_OTHER_VERSION,
    LEFT_CLOSED,       /* a driver ended in it */
    LEFT_DEAD,         /* a driver died in it long ago */
    LEFT_DEAD_WITH_ERRORS,
    LEFT_STRANGE_BESIDE_ERRORS,
    LEFT_LIVE          /* a driver runs in it */
} left_behind;

static asi_cnc make_cnc(const char *dir, int64_t heartbeat_ms)
{
    asi_cnc cnc;
    const asi_cnc_params params = {
        .lengths = { 1024 * 1024 + 768, 1024 * 1024 + 128, 4 * 1024 * 1024, 1024 * 1024, 4 * 1024 * 1024 },
        .client_liveness_timeout_ns = 10 * RIG_SECOND,
        .start_timestamp_ms = 1,
        .pid = 4711,
        .file_page_size = 4096
    };
    CHECK_I64(asi_cnc_create(&cnc, dir, &params), AS_OK);
    asi_ring_mpsc ring;
    CHECK_I64(asi_ring_mpsc_init(&ring, cnc.to_driver, cnc.lengths.to_driver), AS_OK);
    asi_ring_mpsc_set_consumer_heartbeat(&ring, heartbeat_ms);
    asi_cnc_publish(&cnc);
    return cnc;
}

static void leave(const char *dir, left_behind what)
{
    const asi_clock clock = asi_clock_system();
    const int64_t now_ms = asi_clock_ms(&clock);
    asi_cnc cnc = { 0 };
    switch (what)
    {
        case LEFT_NOTHING: scratch_delete(dir); return;
        case LEFT_EMPTY: return;
        case LEFT_STRANGE_FILE: write_file(dir, "strange"); return;
        case LEFT_STRANGE_LOG:
            make_folder(dir, "publications");
            write_file(dir, "publications/strange");
            break;
        case LEFT_SHORT_CNC: write_file(dir, "cnc.dat"); return;
        case LEFT_ZERO_VERSION:
            cnc = make_cnc(dir, now_ms);
            asi_put_i32(cnc.map.base, 0);
            break;
        case LEFT_OTHER_VERSION:
            cnc = make_cnc(dir, now_ms);
            asi_put_i32(cnc.map.base, 0x010000);
            break;
        case LEFT_CLOSED: cnc = make_cnc(dir, -1); break;
        case LEFT_DEAD: cnc = make_cnc(dir, now_ms - 60000); break;
        case LEFT_DEAD_WITH_ERRORS:
        case LEFT_STRANGE_BESIDE_ERRORS:
        {
            asi_error_log errors;
            cnc = make_cnc(dir, now_ms - 60000);
            asi_error_log_init(&errors, cnc.error_log, cnc.lengths.error_log, NULL);
            asi_error_log_record(&errors, 11, "something broke", now_ms);
            asi_error_log_close(&errors);
            if (LEFT_STRANGE_BESIDE_ERRORS == what)
            {
                write_file(dir, "strange");
            }
            break;
        }
        case LEFT_LIVE: cnc = make_cnc(dir, now_ms); break;
    }
    asi_cnc_close(&cnc);
    make_folder(dir, "images");
    write_file(dir, LEFT_LOG);
    write_file(dir, "loss-report.dat");
}

static void claims(void)
{
    static const struct { left_behind what; bool delete_on_start; bool starts; int saved; const char *said; } ROWS[] = {
        { LEFT_NOTHING, false, true, 0, "" },
        { LEFT_EMPTY, false, true, 0, "" },
        { LEFT_STRANGE_FILE, false, false, 0, "" },
        { LEFT_STRANGE_FILE, true, false, 0, "" },
        { LEFT_STRANGE_LOG, false, false, 0, "" },
        { LEFT_SHORT_CNC, false, true, 0, "/cnc.dat has 9 bytes" },
        { LEFT_ZERO_VERSION, false, true, 0, "/cnc.dat is not ready" },
        { LEFT_OTHER_VERSION, false, true, 0, "/cnc.dat is of CnC version 1.0.0 (driver pid 4711), this program needs 0.2; taken for a dead "
            "driver's and replaced: if a driver does run there, stop it" },
        { LEFT_OTHER_VERSION, true, true, 0, "" },
        { LEFT_CLOSED, false, true, 0, "" },
        { LEFT_DEAD, false, true, 0, "" },
        { LEFT_DEAD_WITH_ERRORS, false, true, 1, "Existing errors saved to" },
        { LEFT_DEAD_WITH_ERRORS, true, true, 0, "" },
        { LEFT_STRANGE_BESIDE_ERRORS, false, false, 0, "" },
        { LEFT_LIVE, false, false, 0, "" },
        { LEFT_LIVE, true, true, 0, "" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        as_driver *driver = NULL;
        const char *dir = scratch_folder();
        leave(dir, ROWS[i].what);
        asi_driver_settings settings = rig_settings(dir);
        settings.delete_on_start = ROWS[i].delete_on_start;
        settings.driver_timeout_ms = 1000;
        char said[SAID_CAPACITY];
        const as_result result = open_driver_hearing(&settings, &driver, said);
        CHECK_I64(result, ROWS[i].starts ? AS_OK : AS_E_USAGE);
        CHECK('\0' == ROWS[i].said[0] ? '\0' == said[0] : NULL != strstr(said, ROWS[i].said));
        CHECK_I64(delete_saved_errors(dir), ROWS[i].saved);
        if (AS_OK == result)
        {
            CHECK(has(dir, "cnc.dat") && has(dir, "loss-report.dat") && has(dir, "publications") && has(dir, "images"));
            CHECK(!has(dir, LEFT_LOG) && !has(dir, "driver.lock"));
            as_driver_close(driver);
            CHECK(has(dir, "cnc.dat"));
        }
        else
        {
            const bool is_strange = LEFT_LIVE != ROWS[i].what;
            const bool is_at_top = LEFT_STRANGE_FILE == ROWS[i].what || LEFT_STRANGE_BESIDE_ERRORS == ROWS[i].what;
            const char *file = is_at_top ? "strange" : is_strange ? "publications/strange" : LEFT_LOG;
            CHECK(NULL != strstr(as_error_text(), dir) && NULL != strstr(as_error_text(), is_strange ? file : "4711"));
            CHECK(has(dir, file) && (LEFT_STRANGE_LOG != ROWS[i].what || has(dir, "loss-report.dat")) && !has(dir, "driver.lock"));
        }
    }
}

typedef struct racing_start
{
    asi_driver_settings settings;
    as_driver *driver;
    as_result result;
} racing_start;

static void *race(void *argument)
{
    racing_start *racer = argument;
    racer->result = open_driver(&racer->settings, &racer->driver);
    return NULL;
}

/* Two drivers start at once in a directory of a dead one: one of them gets it, the other one an error. */
static void racing(void)
{
    for (int round = 0; round < 20; round++)
    {
        racing_start racers[2];
        pthread_t threads[2];
        const char *dir = scratch_folder();
        leave(dir, 0 == round % 2 ? LEFT_DEAD : LEFT_EMPTY);
        for (int i = 0; i < 2; i++)
        {
            racers[i] = (racing_start){ .settings = rig_settings(dir) };
            CHECK(0 == pthread_create(&threads[i], NULL, race, &racers[i]));
        }
        for (int i = 0; i < 2; i++)
        {
            CHECK(0 == pthread_join(threads[i], NULL));
        }
        CHECK_I64((AS_OK == racers[0].result) + (AS_OK == racers[1].result), 1);
        CHECK_I64((AS_E_USAGE == racers[0].result) + (AS_E_USAGE == racers[1].result), 1);
        as_driver_close(racers[0].driver);
        as_driver_close(racers[1].driver);
    }
}

/* Deleted on shutdown if so asked, but never when the directory has become another driver's. */
static void shutdown_deletes(void)
{
    static const struct { bool is_replaced; bool remains; } ROWS[] = { { false, false }, { true, true } };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        as_driver *driver = NULL;
        const char *dir = scratch_folder();
        asi_driver_settings settings = rig_settings(dir);
        settings.delete_on_shutdown = true;
        CHECK_I64(open_driver(&settings, &driver), AS_OK);
        as_driver *other = NULL;
        if (ROWS[i].is_replaced)
        {
            settings.delete_on_start = true;
            settings.delete_on_shutdown = false;
            CHECK_I64(open_driver(&settings, &other), AS_OK);
        }
        as_driver_close(driver);
        CHECK_I64(asi_dir_exists(dir), ROWS[i].remains);
        as_driver_close(other);
    }
}

/* What can't work is refused before anything is touched. */
static void unusable(void)
{
    as_driver *driver = NULL;
    asi_driver_settings settings = rig_settings("/proc/aeron-spark-test");
    CHECK_I64(open_driver(&settings, &driver), AS_E_STORAGE);
    const char *dir = scratch_folder();
    write_file(dir, "precious");
    settings = rig_settings(dir);
    settings.timer_interval_ns = settings.client_liveness_timeout_ns;
    CHECK_I64(open_driver(&settings, &driver), AS_E_USAGE);
    CHECK(has(dir, "precious"));
}

/* -- other users of the machine --------------------------------------------------------------------------------------------- */

#define NOBODY 65534

static void refused_naming(const asi_driver_settings *settings, const char *what)
{
    as_driver *driver = NULL;
    CHECK_I64(open_driver(settings, &driver), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), what));
}

/* A folder with other files, and links instead of a directory or in it that lead to them. */
typedef enum planted
{
    PLANTED_LINK,        /* the directory is a link to the folder */
    PLANTED_LINK_SLASH,  /* the same, named with a slash behind it */
    PLANTED_FOLDER_LINK, /* images is one */
    PLANTED_LOG_LINK,    /* a log is a link to a file in it */
    PLANTED_CNC_LINK,
    PLANTED_COUNT
} planted;

static void links_lead_nowhere(void)
{
    static const char *const NAMED[] = { "symbolic link", "symbolic link", "/images is nothing that a media driver makes",
        "/images/5.logbuffer is nothing that a media driver makes", "cnc.dat, a symbolic link" };
    for (int what = 0; what < PLANTED_COUNT; what++)
    {
        char victim[SCRATCH_CAPACITY];
        char dir[SCRATCH_CAPACITY];
        char link[SCRATCH_CAPACITY + 64];
        char target[SCRATCH_CAPACITY + 64];
        scratch_create(victim);
        scratch_create(dir);
        make_folder(victim, "images");
        write_file(victim, "images/1.logbuffer");
        write_file(victim, "loss-report.dat");
        make_folder(dir, "images");
        const char *const places[] = { "/link", "/link", "/images", "/images/5.logbuffer", "/cnc.dat" };
        const char *const targets[] = { "", "", "/images", "/images/1.logbuffer", "/loss-report.dat" };
        snprintf(link, sizeof(link), "%s%s", dir, places[what]);
        snprintf(target, sizeof(target), "%s%s", victim, targets[what]);
        CHECK(PLANTED_FOLDER_LINK != what || 0 == rmdir(link));
        CHECK_I64(symlink(target, link), 0);
        const bool is_dir = what <= PLANTED_LINK_SLASH;
        asi_driver_settings settings = rig_settings(is_dir ? link : dir);
        if (PLANTED_LINK_SLASH == what)
        {
            snprintf(settings.aeron_dir, sizeof(settings.aeron_dir), "%s/", link);
        }
        as_driver *driver = NULL;
        CHECK_I64(open_driver(&settings, &driver), PLANTED_CNC_LINK == what ? AS_E_STORAGE : AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), NAMED[what]));
        settings.delete_on_start = true;
        CHECK(AS_OK != open_driver(&settings, &driver));
        CHECK(has(victim, "images/1.logbuffer") && has(victim, "loss-report.dat"));
        scratch_delete(dir);
        scratch_delete(victim);
    }
}

/* Errors of the driver before are saved beside the directory, where names are free for all. */
static void saved_errors_follow_no_link(void)
{
    char dir[SCRATCH_CAPACITY];
    char victim[SCRATCH_CAPACITY];
    scratch_create(dir);
    scratch_create(victim);
    leave(dir, LEFT_DEAD_WITH_ERRORS);
    asi_driver_settings settings = rig_settings(dir);
    char target[SCRATCH_CAPACITY + 16];
    snprintf(target, sizeof(target), "%s/file", victim);
    /* Every millisecond of the next 3 seconds. */
    const asi_clock clock = asi_clock_system();
    const int64_t now_ms = asi_clock_ms(&clock);
    for (int64_t ms = now_ms; ms < now_ms + 3000; ms++)
    {
        char link[SCRATCH_CAPACITY + 128];
        char date[64];
        char zone[16];
        const time_t seconds = (time_t)(ms / 1000);
        struct tm local;
        localtime_r(&seconds, &local);
        strftime(date, sizeof(date), "%Y-%m-%d %H-%M-%S", &local);
        strftime(zone, sizeof(zone), "%z", &local);
        snprintf(link, sizeof(link), "%s-%s.%03d%s-error.log", dir, date, (int)(ms % 1000), zone);
        CHECK_I64(symlink(target, link), 0);
    }
    as_driver *driver = NULL;
    char said[SAID_CAPACITY];
    CHECK_I64(open_driver_hearing(&settings, &driver, said), AS_OK);
    CHECK(!has(victim, "file"));
    CHECK(NULL != strstr(said, "cannot save existing errors") || NULL != strstr(said, "Existing errors saved"));
    as_driver_close(driver);
    CHECK(delete_saved_errors(dir) >= 3000);
    scratch_delete(dir);
    scratch_delete(victim);
}

static void modes(void)
{
    static const struct { mode_t mode; const char *writers; const char *named; } ROWS[] = {
        { 0700, "", NULL },
        { 0775, "", NULL }, /* of an umask of 002 */
        { 0775, "owner", "its group" },
        { 0777, "", "every user" },
        { 0777, "group", "every user" },
        { 0777, "all", NULL },
        { 01777, "", NULL }, /* a file system of its own */
        { 01777, "owner", NULL },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const char *dir = scratch_folder();
        leave(dir, LEFT_DEAD);
        CHECK_I64(chmod(dir, ROWS[i].mode), 0);
        asi_driver_settings settings = rig_settings(dir);
        snprintf(settings.dir_writers, sizeof(settings.dir_writers), "%s", ROWS[i].writers);
        if (NULL == ROWS[i].named)
        {
            as_driver *driver = NULL;
            CHECK_I64(open_driver(&settings, &driver), AS_OK);
            as_driver_close(driver);
        }
        else
        {
            refused_naming(&settings, ROWS[i].named);
            CHECK(has(dir, LEFT_LOG));
        }
    }
}

static void strange_owners(void)
{
    if (0 != geteuid())
    {
        return; /* only root can make files of another user */
    }
    static const struct { const char *of; const char *owner; bool starts; } ROWS[] = {
        { "", "", false }, { "", "65534", true }, { "", "1", false }, { "/cnc.dat", "", false }, { "/cnc.dat", "65534", true },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        char path[SCRATCH_CAPACITY + 16];
        const char *dir = scratch_folder();
        leave(dir, LEFT_DEAD);
        snprintf(path, sizeof(path), "%s%s", dir, ROWS[i].of);
        CHECK_I64(chown(path, NOBODY, NOBODY), 0);
        asi_driver_settings settings = rig_settings(dir);
        snprintf(settings.dir_owner, sizeof(settings.dir_owner), "%s", ROWS[i].owner);
        if (ROWS[i].starts)
        {
            as_driver *driver = NULL;
            CHECK_I64(open_driver(&settings, &driver), AS_OK);
            as_driver_close(driver);
        }
        else
        {
            refused_naming(&settings, "aeron.spark.dir.owner=");
            CHECK(NULL != strstr(as_error_text(), path) && has(dir, LEFT_LOG));
        }
    }
}

/* A driver of another user in a directory of root's that anybody may write, as a file system of its own is. */
static int drive_as_nobody(const char *dir)
{
    if (0 != setgid(NOBODY) || 0 != setuid(NOBODY))
    {
        return 1;
    }
    as_driver *driver = NULL;
    asi_driver_settings settings = rig_settings(dir);
    settings.delete_on_shutdown = true;
    if (AS_OK != open_driver(&settings, &driver))
    {
        return 2;
    }
    as_driver_close(driver);
    return has(dir, "cnc.dat") ? 3 : 0;
}

/* Anybody may open a directory that he can read, and lock it: that must not keep its driver from starting. */
static int lock_as_nobody(const char *dir, const int ready[2], const int done[2])
{
    char byte = 0;
    if (0 != setgid(NOBODY) || 0 != setuid(NOBODY))
    {
        return 1;
    }
    const int fd = open(dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || 0 != flock(fd, LOCK_EX | LOCK_NB))
    {
        return 2;
    }
    return 1 == write(ready[1], "", 1) && 1 == read(done[0], &byte, 1) ? 0 : 3;
}

static void strangers_hold_nobody_up(void)
{
    if (0 != geteuid())
    {
        return;
    }
    char dir[SCRATCH_CAPACITY];
    int ready[2];
    int done[2];
    char byte;
    int status;
    scratch_create(dir);
    CHECK_I64(chmod(dir, 0755), 0);
    CHECK(0 == pipe(ready) && 0 == pipe(done));
    pid_t child = fork();
    if (0 == child)
    {
        _exit(lock_as_nobody(dir, ready, done));
    }
    CHECK_I64(read(ready[0], &byte, 1), 1);
    asi_driver_settings settings = rig_settings(dir);
    settings.driver_timeout_ms = 100;
    as_driver *driver = NULL;
    CHECK_I64(open_driver(&settings, &driver), AS_OK);
    as_driver_close(driver);
    CHECK_I64(write(done[1], "", 1), 1);
    CHECK(child == waitpid(child, &status, 0) && 0 == status);
    scratch_delete(dir);

    scratch_create(dir);
    CHECK_I64(chmod(dir, 01777), 0);
    child = fork();
    if (0 == child)
    {
        _exit(drive_as_nobody(dir));
    }
    CHECK(child == waitpid(child, &status, 0) && 0 == status);
    scratch_delete(dir);
    CHECK(0 == close(ready[0]) && 0 == close(ready[1]) && 0 == close(done[0]) && 0 == close(done[1]));
}

int main(void)
{
    RUN(claims);
    RUN(racing);
    RUN(shutdown_deletes);
    RUN(unusable);
    RUN(links_lead_nowhere);
    RUN(saved_errors_follow_no_link);
    RUN(modes);
    RUN(strange_owners);
    RUN(strangers_hold_nobody_up);
    return 0;
}
