/* Goal: a client sends nothing through a directory that another user made, or may change, unless a setting trusts that user.
 *
 * Method: a live driver whose directory is then opened to others, linked to, or (where root runs it) given another owner. */
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

static as_result open_on(world *w, const char *dir, const char *owner, const char *writers)
{
    as_client_options options;
    world_options(w, &options);
    options.aeron_dir = dir;
    options.dir_owner = owner;
    options.dir_writers = writers;
    const as_result checked = as_check_aeron_dir(dir, owner, writers);
    const as_result result = as_client_open(&options, &w->client);
    CHECK_I64(checked, result);
    if (AS_OK == result)
    {
        as_client_close(w->client);
        w->client = NULL;
    }
    return result;
}

static void directories_of_others(world *w)
{
    CHECK_I64(open_on(w, w->dir, NULL, NULL), AS_OK);

    CHECK_I64(chmod(w->dir, 0777), 0);
    CHECK_I64(open_on(w, w->dir, NULL, NULL), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), w->dir) && NULL != strstr(as_error_text(), "every user"));
    CHECK_I64(open_on(w, w->dir, NULL, "all"), AS_OK);
    CHECK_I64(chmod(w->dir, 0755), 0);

    char link[sizeof(w->dir) + 16];
    snprintf(link, sizeof(link), "%s-link", w->dir);
    CHECK_I64(symlink(w->dir, link), 0);
    CHECK_I64(open_on(w, link, NULL, "all"), AS_E_USAGE);
    CHECK_I64(open_on(w, w->dir, "no such user", NULL), AS_E_USAGE);

    if (0 == geteuid())
    {
        CHECK_I64(chown(w->dir, 65534, 65534), 0);
        CHECK_I64(open_on(w, w->dir, NULL, NULL), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "AERON_SPARK_DIR_OWNER"));
        CHECK_I64(as_request_driver_termination(w->dir, NULL, 0), AS_E_USAGE);
        CHECK_I64(open_on(w, w->dir, "65534", NULL), AS_OK);
        CHECK_I64(setenv("AERON_SPARK_DIR_OWNER", "65534", 1), 0);
        CHECK_I64(open_on(w, w->dir, NULL, NULL), AS_OK);
        CHECK_I64(unsetenv("AERON_SPARK_DIR_OWNER"), 0);
    }
}

/* Reading is allowed everywhere; a missing directory needs no trust. */
static void looking_is_free(world *w)
{
    CHECK_I64(chmod(w->dir, 0777), 0);
    as_inspector *inspector;
    CHECK_I64(as_inspector_open(w->dir, &inspector), AS_OK);
    as_inspector_close(inspector);
    CHECK_I64(as_check_aeron_dir("/dev/shm/aeron-spark-test-absent", NULL, NULL), AS_OK);
}

#define RUN_WITHOUT_CLIENT(test) RUN_IN(world, world_open_driver(&fixture, false), test, world_close(&fixture))

int main(void)
{
    RUN_WITHOUT_CLIENT(directories_of_others);
    RUN_WITHOUT_CLIENT(looking_is_free);
    return 0;
}
