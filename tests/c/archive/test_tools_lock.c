/* Goal: a tool holds a folder for as long as it works, and leaves the mark file as it was. Method: a mark file of an archive
 * that ended, and a clock of our own. Spec: 06 §10. */
#include "store/archive_support.h"
#include "store/mark.h"
#include "tools/lock.h"

static int64_t now_ms = 1795190215494;

static int64_t clock_ms(void *context)
{
    (void)context;
    return now_ms;
}

static const asi_clock test_clock = { .nano_time = clock_ms, .epoch_ms = clock_ms };

static int64_t activity(const char *dir)
{
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(dir, &info), AS_OK);
    return info.activity_timestamp_ms;
}

static void a_tool_keeps_a_folder_that_it_works_on(void)
{
    const char *scratch = scratch_folder();
    const asi_mark_params params = { .archive_dir = scratch, .error_buffer_length = ASI_MARK_MIN_ERROR_BUFFER_LENGTH,
        .file_page_size = 4096, .start_timestamp_ms = now_ms, .pid = 9325, .aeron_dir = "/dev/shm/lab-arch" };
    asi_mark *mark;
    CHECK_I64(asi_mark_open(&params, &test_clock, &mark), AS_OK);
    asi_mark_ready(mark, 42, now_ms);
    asi_mark_close(mark);
    const int64_t before = activity(scratch);

    asi_tool_lock lock;
    CHECK_I64(asi_tool_lock_take(&lock, scratch), AS_OK);
    now_ms = lock.beat_ms;
    lock.clock = test_clock;
    CHECK_I64(activity(scratch), now_ms);
    now_ms += ASI_MARK_UPDATE_INTERVAL_MS - 1;
    asi_tool_lock_beat(&lock);
    CHECK_I64(activity(scratch), lock.beat_ms);
    CHECK(now_ms > lock.beat_ms);
    for (int i = 0; i < 3; i++)
    {
        now_ms = lock.beat_ms + ASI_MARK_UPDATE_INTERVAL_MS;
        asi_tool_lock_beat(&lock);
        CHECK_I64(activity(scratch), now_ms);
    }
    asi_tool_lock other;
    CHECK_I64(asi_tool_lock_take(&other, scratch), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "active mark file detected"));
    CHECK_I64(asi_mark_open(&params, &test_clock, &mark), AS_E_USAGE);
    asi_tool_lock_release(&lock);
    CHECK_I64(activity(scratch), before);
}

int main(void)
{
    RUN(a_tool_keeps_a_folder_that_it_works_on);
    return 0;
}
