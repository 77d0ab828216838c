/* Finds positions at which frames begin. The public API, planning of ranges, is in aeron_spark/as_archive.h. */
#ifndef ASI_STORE_FOLDER_PLAN_H
#define ASI_STORE_FOLDER_PLAN_H

#include "store/segment_read.h"

/* Finds the first position in [position, limit] where a frame of the recording begins or the recording ends. Usually that is
 * `position` itself. */
as_result asi_folder_frame_at(asi_segment_window *window, int64_t position, int64_t limit, int64_t *frame_position) AS_MUST_USE;

#endif
