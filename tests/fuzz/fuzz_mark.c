/* A mark file: read, and claimed by an archive that starts on it; each works or says why not. */
#include <inttypes.h>

#include "base/clock.h"
#include "fuzz.h"
#include "store/mark.h"

static char folder[SCRATCH_CAPACITY];

static void end(void) { scratch_delete(folder); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[SCRATCH_CAPACITY + 32];
    if ('\0' == folder[0])
    {
        scratch_create(folder);
        atexit(end);
    }
    snprintf(path, sizeof(path), "%s/archive-mark.dat", folder);
    FILE *file = fopen(path, "wb");
    CHECK(NULL != file && size == fwrite(data, 1, size, file) && 0 == fclose(file));
    /* As long as it is, and as long as an archive makes it: behind the header then lies an error log of zeros. */
    for (int i = 0; i < 2; i++)
    {
        asi_mark_info info;
        if (AS_OK != asi_mark_read_untrusted(folder, &info))
        {
            CHECK('\0' != as_error_text()[0]);
        }
        CHECK(0 == truncate(path, 8192 + 1024 * 1024));
    }
    const asi_clock clock = asi_clock_system();
    const asi_mark_params params = {
        .archive_dir = folder,
        .error_buffer_length = 1024 * 1024,
        .file_page_size = 4096,
        .start_timestamp_ms = asi_clock_ms(&clock),
        .pid = getpid(),
        .local_control_channel = "aeron:ipc",
        .aeron_dir = "/dev/shm/aeron-none",
    };
    asi_mark *mark = NULL;
    if (AS_OK == asi_mark_open(&params, &clock, &mark))
    {
        asi_mark_ready(mark, 7, asi_clock_ms(&clock));
        asi_mark_info info;
        CHECK_I64(asi_mark_read_untrusted(folder, &info), AS_OK);
        CHECK_I64(info.pid, getpid());
        asi_mark_close(mark);
    }
    else
    {
        CHECK('\0' != as_error_text()[0]);
    }
    CHECK(0 == unlink(path));
    return 0;
}
