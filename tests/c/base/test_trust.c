/* Goal: settings of trusted users are read, and files whose names others may have taken are refused.
 *
 * Method: a table of texts; links in a directory of the test's own, one with another owner where root runs it. */
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static void texts(void)
{
    static const struct
    {
        const char *owner;
        const char *writers;
        const char *owner_in_environment;
        const char *writers_in_environment;
        as_result result;
        asi_trust trust;
    } ROWS[] = {
        { NULL, NULL, NULL, NULL, AS_OK, { -1, ASI_WRITERS_GROUP } },
        { "", "", "", "", AS_OK, { -1, ASI_WRITERS_GROUP } },
        { "root", "owner", NULL, NULL, AS_OK, { 0, ASI_WRITERS_OWNER } },
        { "4711", "all", "0", "owner", AS_OK, { 4711, ASI_WRITERS_ALL } },
        { NULL, NULL, "4711", "all", AS_OK, { 4711, ASI_WRITERS_ALL } },
        { "no such user", NULL, NULL, NULL, AS_E_USAGE, { 0 } },
        { "-1", NULL, NULL, NULL, AS_E_USAGE, { 0 } },
        { "4294967295", NULL, NULL, NULL, AS_E_USAGE, { 0 } },
        { NULL, "everybody", NULL, NULL, AS_E_USAGE, { 0 } },
        { NULL, NULL, NULL, "0", AS_E_USAGE, { 0 } },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const char *const names[] = { "AERON_SPARK_DIR_OWNER", "AERON_SPARK_DIR_WRITERS" };
        const char *const values[] = { ROWS[i].owner_in_environment, ROWS[i].writers_in_environment };
        for (int at = 0; at < 2; at++)
        {
            CHECK_I64(NULL == values[at] ? unsetenv(names[at]) : setenv(names[at], values[at], 1), 0);
        }
        asi_trust trust;
        CHECK_I64(asi_trust_parse(&trust, ROWS[i].owner, ROWS[i].writers), ROWS[i].result);
        if (AS_OK == ROWS[i].result)
        {
            CHECK_I64(trust.owner, ROWS[i].trust.owner);
            CHECK_I64(trust.writers, ROWS[i].trust.writers);
        }
        else
        {
            CHECK(NULL != strstr(as_error_text(), "aeron.spark.dir."));
        }
    }
    CHECK(0 == unsetenv("AERON_SPARK_DIR_OWNER") && 0 == unsetenv("AERON_SPARK_DIR_WRITERS"));
}

static void links_of_strangers(void)
{
    char target[SCRATCH_CAPACITY + 16];
    char link[SCRATCH_CAPACITY + 16];
    const char *dir = scratch_folder();
    snprintf(target, sizeof(target), "%s/target", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    CHECK_I64(symlink(target, link), 0);
    int fd = asi_open_no_strange_link(link, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && 0 == close(fd) && 0 == unlink(target));
    if (0 == geteuid())
    {
        CHECK_I64(lchown(link, 65534, 65534), 0);
        fd = asi_open_no_strange_link(link, O_WRONLY | O_CREAT, 0600);
        CHECK(fd < 0 && ELOOP == errno && 0 != access(target, F_OK));
    }
}

int main(void)
{
    RUN(texts);
    RUN(links_of_strangers);
    return 0;
}
