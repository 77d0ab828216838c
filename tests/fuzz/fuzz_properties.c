/* Properties files and defines, with every setting of driver and archive: each is set, or its failure names it. */
#include "driver/config.h"
#include "fuzz.h"
#include "server/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[SCRATCH_CAPACITY];
    if ('\0' == path[0])
    {
        snprintf(path, sizeof(path), "/dev/shm/aeron-spark-fuzz-%d", (int)getpid());
    }
    FILE *file = fopen(path, "wb");
    CHECK(NULL != file && size == fwrite(data, 1, size, file) && 0 == fclose(file));
    as_driver_config *config = NULL;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    if (AS_OK == as_driver_config_load_properties(config, path))
    {
        (void)!asi_driver_settings_check(&config->settings);
    }
    else
    {
        CHECK('\0' != as_error_text()[0]);
    }
    as_driver_config_close(config);
    as_archive_config *archive = NULL;
    CHECK_I64(as_archive_config_open(&archive), AS_OK);
    if (AS_OK == as_archive_config_load_properties(archive, path))
    {
        (void)!asi_archive_config_check(archive);
    }
    as_archive_config_close(archive);
    CHECK(0 == unlink(path));
    return 0;
}
