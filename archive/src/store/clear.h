/* Deletes the files that archives make from an archive's folder, and nothing else.
 *
 * With stock, aeron.archive.dir.delete.on.start deletes whatever aeron.archive.dir names. Here a name that no archive makes is an
 * error, and nothing is deleted. Names are checked and deleted relative to the opened folder. Thread rule: any. */
#ifndef ASI_STORE_CLEAR_H
#define ASI_STORE_CLEAR_H

#include "base/result.h"

/* Keeps the folder itself. `path` is for error texts. AS_E_USAGE names the file that no archive makes. */
as_result asi_archive_clear(int folder, const char *path) AS_MUST_USE;

#endif
