/* Empties an archive's folder of what archives make in it, and of nothing else.
 *
 * aeron.archive.dir.delete.on.start deletes with stock whatever aeron.archive.dir names. Here a name that no archive makes is an
 * error, and then nothing was deleted; names are judged and deleted relative to the opened folder. Thread rule: any. */
#ifndef ASI_STORE_CLEAR_H
#define ASI_STORE_CLEAR_H

#include "base/result.h"

/* The folder itself stays. `path` is for texts. AS_E_USAGE names what no archive makes. */
as_result asi_archive_clear(int folder, const char *path) AS_MUST_USE;

#endif
