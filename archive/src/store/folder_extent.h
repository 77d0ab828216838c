/* Detects the checksum of a recording's frames. The public API, extents, is in aeron_spark/as_archive.h. */
#ifndef ASI_STORE_FOLDER_EXTENT_H
#define ASI_STORE_FOLDER_EXTENT_H

#include "store/segment_read.h"

/* Detects which checksum the frames from `position` on carry: CRC-32, CRC-32C, or NONE if no frame's session id is a checksum.
 * `is_unlike` (may be NULL): there are frames, and none has the session id of the catalog. */
as_result asi_folder_detect_checksum(asi_segment_window *window, int64_t position, int64_t limit, int32_t catalog_session_id,
    as_record_checksum *checksum, bool *is_unlike) AS_MUST_USE;

#endif
