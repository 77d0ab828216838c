/* main of a fuzz target without libFuzzer: runs it over the files named, and those in the directories named. */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static int64_t replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(NULL != file);
    uint8_t *bytes = malloc(1 << 20);
    CHECK(NULL != bytes);
    const size_t length = fread(bytes, 1, 1 << 20, file);
    uint8_t *exact = realloc(bytes, 0 == length ? 1 : length);
    CHECK(NULL != exact);
    fclose(file);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
    return 1;
}

static int64_t replay(const char *path)
{
    struct stat st;
    CHECK(0 == stat(path, &st));
    if (!S_ISDIR(st.st_mode))
    {
        return replay_file(path);
    }
    DIR *dir = opendir(path);
    CHECK(NULL != dir);
    int64_t count = 0;
    for (struct dirent *entry = readdir(dir); NULL != entry; entry = readdir(dir))
    {
        char file[AS_PATH_MAX];
        if ('.' != entry->d_name[0])
        {
            snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
            count += replay_file(file);
        }
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int64_t count = 0;
    for (int i = 1; i < argc; i++)
    {
        count += replay(argv[i]);
    }
    printf("%" PRId64 " inputs\n", count);
    return count > 0 ? 0 : 1;
}
