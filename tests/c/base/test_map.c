/* Goal: mapped files are made exclusively and zeroed, opened only whole, and failures leave nothing behind.
 * Method: files in a scratch directory.
 * Spec: 01 §1.1. */
#include "support.h"

#include <errno.h>
#include <sys/stat.h>

static void creates_zeroed_and_exclusive(void)
{
    const char *path = scratch_file("file");
    for (int reserve = 0; reserve <= 1; reserve++)
    {
        asi_map map;
        CHECK_I64(asi_map_create(&map, path, 12288, reserve), AS_OK);
        CHECK_I64(map.length, 12288);
        for (int64_t i = 0; i < map.length; i++)
        {
            CHECK(0 == map.base[i]);
        }
        map.base[12287] = 42;
        asi_map second;
        CHECK_I64(asi_map_create(&second, path, 4096, reserve), AS_E_STORAGE);
        CHECK_I64(as_error_code(), EEXIST);
        asi_map_sync(&map);
        asi_map_close(&map);
        CHECK(NULL == map.base);
        asi_map_close(&map);

        CHECK_I64(asi_map_open(&map, path, 12288, false), AS_OK);
        CHECK_I64(map.base[12287], 42);
        asi_map_close(&map);
        CHECK_I64(unlink(path), 0);
    }
}

static void failure_removes_the_file(void)
{
    const char *path = scratch_file("file");
    asi_map map;
    CHECK_I64(asi_map_create(&map, path, INT64_MAX / 2, true), AS_E_STORAGE);
    CHECK(!asi_file_exists(path));
}

static void opening_says_again_for_what_may_come(void)
{
    char path[SCRATCH_CAPACITY + 16];
    const char *dir = scratch_folder();
    snprintf(path, sizeof(path), "%s/file", dir);
    asi_map map;
    CHECK_I64(asi_map_open(&map, path, 1, true), AS_AGAIN);
    CHECK_I64(as_error_code(), ENOENT);
    FILE *file = fopen(path, "w");
    CHECK(NULL != file);
    CHECK(0 == fclose(file));
    CHECK_I64(asi_map_open(&map, path, 0, true), AS_AGAIN);
    CHECK_I64(truncate(path, 100), 0);
    CHECK_I64(asi_map_open(&map, path, 101, true), AS_AGAIN);
    CHECK_I64(asi_map_open(&map, path, 100, true), AS_OK);
    asi_map_close(&map);
    CHECK_I64(asi_map_open(&map, dir, 1, false), AS_E_STORAGE);
}

static void directories(void)
{
    char dir[SCRATCH_CAPACITY];
    char deep[SCRATCH_CAPACITY + 16];
    char link[SCRATCH_CAPACITY + 16];
    scratch_create(dir);
    snprintf(deep, sizeof(deep), "%s/a/b/c", dir);
    snprintf(link, sizeof(link), "%s/a/link", dir);
    CHECK_I64(asi_dir_create(deep), AS_OK);
    CHECK_I64(asi_dir_create(deep), AS_OK);
    CHECK(asi_dir_exists(deep));
    char kept[SCRATCH_CAPACITY];
    scratch_create(kept);
    CHECK_I64(symlink(kept, link), 0);
    scratch_delete(dir);
    CHECK(!asi_dir_exists(dir));
    CHECK(asi_dir_exists(kept));
    scratch_delete(kept);
    CHECK_I64(asi_dir_delete(dir), AS_OK);
    CHECK_I64(asi_dir_create(""), AS_E_USAGE);
    CHECK(asi_usable_space("/dev/shm") > 0);
    CHECK_I64(asi_usable_space(dir), INT64_MAX);
}

static void default_dir_follows_the_environment(void)
{
    char dir[AS_PATH_MAX];
    CHECK_I64(setenv("AERON_DIR", "/dev/shm/elsewhere", 1), 0);
    asi_default_aeron_dir(dir, sizeof(dir));
    CHECK_TEXT(dir, "/dev/shm/elsewhere");
    CHECK_I64(unsetenv("AERON_DIR"), 0);
    CHECK_I64(setenv("USER", "somebody", 1), 0);
    asi_default_aeron_dir(dir, sizeof(dir));
    CHECK_TEXT(dir, "/dev/shm/aeron-somebody");
}

int main(void)
{
    RUN(creates_zeroed_and_exclusive);
    RUN(failure_removes_the_file);
    RUN(opening_says_again_for_what_may_come);
    RUN(directories);
    RUN(default_dir_follows_the_environment);
    return 0;
}
