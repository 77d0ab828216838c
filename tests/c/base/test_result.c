/* Goal: the thread's failure text is whole, chained, bounded and private to the thread. Method: direct calls. */
#include "base/result.h"

#include <errno.h>
#include <pthread.h>

#include "check.h"

static void records_and_chains(void)
{
    CHECK_I64(asi_fail(AS_E_USAGE, 7, "value %d", 42), AS_E_USAGE);
    CHECK_TEXT(as_error_text(), "value 42");
    CHECK_I64(as_error_code(), 7);
    CHECK_I64(asi_fail_in(AS_E_USAGE, "option %s", "mtu"), AS_E_USAGE);
    CHECK_TEXT(as_error_text(), "option mtu: value 42");
    CHECK_I64(as_error_code(), 7);
    CHECK_I64(asi_fail_errno(AS_E_STORAGE, ENOENT, "cannot open %s", "x"), AS_E_STORAGE);
    CHECK_TEXT(as_error_text(), "cannot open x: No such file or directory");
    CHECK_I64(as_error_code(), ENOENT);
    CHECK_I64(asi_fail(AS_E_PEER, 0, "again: %s", as_error_text()), AS_E_PEER);
    CHECK_TEXT(as_error_text(), "again: cannot open x: No such file or directory");
}

/* Errnos and protocol codes have the same numbers. */
static void tells_errnos_from_protocol_codes(void)
{
    asi_fail(AS_E_USAGE, 13, "a protocol code");
    CHECK(!asi_error_is_errno());
    asi_fail_errno(AS_E_USAGE, EACCES, "cannot bind");
    CHECK(asi_error_is_errno());
    asi_fail_in(AS_E_USAGE, "channel");
    CHECK(asi_error_is_errno());
    asi_fail(AS_E_USAGE, 13, "another");
    CHECK(!asi_error_is_errno());
    asi_fail_in(AS_E_USAGE, "channel");
    CHECK(!asi_error_is_errno());
    CHECK_I64(asi_fail_again(AS_E_USAGE, EACCES, true, "of another thread: 100%"), AS_E_USAGE);
    CHECK(asi_error_is_errno());
    CHECK_I64(as_error_code(), EACCES);
    CHECK_TEXT(as_error_text(), "of another thread: 100%");
    asi_fail_again(AS_E_USAGE, EACCES, false, "of another thread");
    CHECK(!asi_error_is_errno());
}

static void cuts_what_is_too_long(void)
{
    static char huge[20000];
    memset(huge, 'x', sizeof(huge) - 1);
    asi_fail(AS_E_USAGE, 0, "%s", huge);
    CHECK(strlen(as_error_text()) < sizeof(huge) - 1);
    for (int i = 0; i < 20; i++)
    {
        asi_fail_in(AS_E_USAGE, "%s", huge);
    }
    CHECK('x' == as_error_text()[0]);
}

static void *other_thread(void *context)
{
    (void)context;
    CHECK_TEXT(as_error_text(), "");
    asi_fail(AS_E_USAGE, 1, "theirs");
    return NULL;
}

static void is_per_thread(void)
{
    asi_fail(AS_E_USAGE, 2, "ours");
    pthread_t thread;
    CHECK_I64(pthread_create(&thread, NULL, other_thread, NULL), 0);
    CHECK_I64(pthread_join(thread, NULL), 0);
    CHECK_TEXT(as_error_text(), "ours");
}

int main(void)
{
    RUN(records_and_chains);
    RUN(tells_errnos_from_protocol_codes);
    RUN(cuts_what_is_too_long);
    RUN(is_per_thread);
    return 0;
}
