/* What C tests share besides check.h: scratch directories, golden files, a seed.
 *
 * Golden files lie in AS_GOLDEN_DIR; the README beside them describes their formats. */
#ifndef AS_TESTS_SUPPORT_H
#define AS_TESTS_SUPPORT_H

#include <sys/types.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/map.h"
#include "base/rand.h"
#include "check.h"

#define SCRATCH_CAPACITY 64

/* A fresh directory in memory; remove with scratch_delete. */
static inline void scratch_create(char *path)
{
    snprintf(path, SCRATCH_CAPACITY, "/dev/shm/aeron-spark-test-XXXXXX");
    CHECK(NULL != mkdtemp(path));
}

static inline void scratch_delete(const char *path) { CHECK_I64(asi_dir_delete(path), AS_OK); }

static char scratch_path[SCRATCH_CAPACITY];
static pid_t scratch_owner;

static inline void scratch_end(void)
{
    if (getpid() == scratch_owner)
    {
        (void)!asi_dir_delete(scratch_path);
    }
}

/* A fresh directory in memory, for the test that runs: deleted at the next call, or when the program ends, by a failed CHECK too. */
static inline const char *scratch_folder(void)
{
    if (0 != scratch_owner)
    {
        scratch_delete(scratch_path);
    }
    else
    {
        scratch_owner = getpid();
        CHECK_I64(atexit(scratch_end), 0);
    }
    scratch_create(scratch_path);
    return scratch_path;
}

/* Path of a file in a fresh directory, as scratch_folder; valid until the next call. */
static inline const char *scratch_file(const char *name)
{
    static char path[SCRATCH_CAPACITY + 64];
    CHECK(snprintf(path, sizeof(path), "%s/%s", scratch_folder(), name) < (int)sizeof(path));
    return path;
}

/* Heap copy of a golden file, one zero byte behind it; free it. */
static inline uint8_t *golden_load(const char *name, int64_t *length)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", AS_GOLDEN_DIR, name);
    FILE *file = fopen(path, "rb");
    CHECK(NULL != file);
    CHECK(0 == fseek(file, 0, SEEK_END));
    *length = ftell(file);
    rewind(file);
    uint8_t *bytes = calloc(1, (size_t)*length + 1);
    CHECK(NULL != bytes);
    CHECK((size_t)*length == fread(bytes, 1, (size_t)*length, file));
    fclose(file);
    return bytes;
}

/* The original of a .sparse file; free it. */
static inline uint8_t *golden_load_sparse(const char *name, int64_t *length)
{
    int64_t packed_length;
    uint8_t *packed = golden_load(name, &packed_length);
    *length = asi_get_i64(packed);
    uint8_t *bytes = calloc(1, (size_t)*length);
    CHECK(NULL != bytes);
    for (int64_t at = 8; at < packed_length;)
    {
        const int64_t offset = asi_get_i64(packed + at);
        const int64_t stretch = asi_get_i64(packed + at + 8);
        CHECK(offset >= 0 && stretch > 0 && offset + stretch <= *length && at + 16 + stretch <= packed_length);
        memcpy(bytes + offset, packed + at + 16, (size_t)stretch);
        at += 16 + stretch;
    }
    free(packed);
    return bytes;
}

/* The same as a file. */
static inline void golden_unpack(const char *name, const char *to_path)
{
    int64_t length;
    uint8_t *bytes = golden_load_sparse(name, &length);
    FILE *file = fopen(to_path, "wb");
    CHECK(NULL != file);
    CHECK((size_t)length == fwrite(bytes, 1, (size_t)length, file));
    CHECK(0 == fclose(file));
    free(bytes);
}

/* Seeded by TEST_SEED, else by the kernel; prints what repeats the run. */
static inline asi_rand test_rand(void)
{
    asi_rand rand;
    const char *given = getenv("TEST_SEED");
    asi_rand_seed_system(&rand);
    const uint64_t seed = NULL != given ? strtoull(given, NULL, 0) : asi_rand_u64(&rand);
    asi_rand_seed(&rand, seed);
    printf("TEST_SEED=%" PRIu64 "\n", seed);
    return rand;
}

/* Uniform in [0, bound). */
static inline int64_t test_rand_below(asi_rand *rand, int64_t bound)
{
    return (int64_t)(asi_rand_u64(rand) % (uint64_t)bound);
}

#endif
