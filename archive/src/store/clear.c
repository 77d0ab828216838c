/* See clear.h. */
#define _GNU_SOURCE
#include "store/clear.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/catalog.h"
#include "store/mark.h"
#include "store/segment_layout.h"
#include "store/time_index.h"

static bool begins_with(const char *name, const char *prefix) { return 0 == strncmp(name, prefix, strlen(prefix)); }

static bool ends_with(const char *name, const char *suffix)
{
    const size_t length = strlen(name);
    return length >= strlen(suffix) && 0 == strcmp(name + length - strlen(suffix), suffix);
}

/* Accepts "-<position>.rec" and ".time-index" after a recording's id, with the suffixes of files being replaced or deleted. */
static bool is_of_recording(const char *name)
{
    char *end;
    (void)strtoll(name, &end, 10);
    return end != name && (begins_with(end, ASI_TIME_INDEX_SUFFIX) || (begins_with(end, "-") && NULL != strstr(end, ASI_SEGMENT_SUFFIX)));
}

/* Spec: 06 §1; migrations by stock tools leave "migration-...dat". */
static bool is_made_by_archives(const char *name)
{
    return begins_with(name, ASI_CATALOG_FILE) || 0 == strcmp(name, ASI_MARK_FILE) || 0 == strcmp(name, ASI_MARK_LINK_FILE) ||
        (begins_with(name, "archive-") && ends_with(name, "-error.log")) ||
        (begins_with(name, "migration-") && ends_with(name, ".dat")) || is_of_recording(name);
}

static as_result judge(int folder, const char *path, const char *name)
{
    struct stat st;
    if (0 != fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
    {
        return ENOENT == errno ? AS_OK : asi_fail_errno(AS_E_STORAGE, errno, "cannot stat %s/%s", path, name);
    }
    return S_ISREG(st.st_mode) && is_made_by_archives(name) ? AS_OK : asi_fail(AS_E_USAGE, EEXIST,
        "%s/%s is nothing that an archive makes, so nothing in that folder is deleted: move it elsewhere, or name another "
        "aeron.archive.dir", path, name);
}

static as_result delete_file(int folder, const char *path, const char *name)
{
    return 0 == unlinkat(folder, name, 0) || ENOENT == errno ? AS_OK :
        asi_fail_errno(AS_E_STORAGE, errno, "cannot delete %s/%s", path, name);
}

as_result asi_archive_clear(int folder, const char *path)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listed = own < 0 ? NULL : fdopendir(own);
    if (NULL == listed)
    {
        const int error = errno;
        if (own >= 0)
        {
            close(own);
        }
        return asi_fail_errno(AS_E_STORAGE, error, "cannot read folder %s", path);
    }
    as_result result = AS_OK;
    for (int pass = 0; pass < 2 && AS_OK == result; pass++)
    {
        rewinddir(listed);
        for (struct dirent *entry = readdir(listed); NULL != entry && AS_OK == result; entry = readdir(listed))
        {
            const char *name = entry->d_name;
            /* A folder that is a mount point may have lost+found. */
            if (0 != strcmp(name, ".") && 0 != strcmp(name, "..") && 0 != strcmp(name, "lost+found"))
            {
                result = 0 == pass ? judge(folder, path, name) : delete_file(folder, path, name);
            }
        }
    }
    closedir(listed);
    return result;
}
