/* Replaces a file of an archive folder atomically. Shared by compaction and migration. */
#ifndef ASI_TOOLS_COMPACT_H
#define ASI_TOOLS_COMPACT_H

#include "tools/catalog_open.h"

/* Writes and syncs `temporary`, renames it to `path` and syncs the folder; removes it on failure. */
as_result asi_tool_replace_file(const asi_file_ops *files, const char *dir, const char *temporary, const char *path,
    const uint8_t *bytes, int64_t length) AS_MUST_USE;

#endif
