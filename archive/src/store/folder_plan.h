/* Positions at which frames begin. The public side, plans of ranges, is in aeron_spark/as_archive.h. */
#ifndef ASI_STORE_FOLDER_PLAN_H
#define ASI_STORE_FOLDER_PLAN_H

#include "store/segment_read.h"

/* The first position >= `position` where a frame of the recording begins or the recording ends; `position` itself in the usual
 * case. <= limit. */
as_result asi_folder_frame_at(asi_segment_window *window, int64_t position, int64_t limit, int64_t *frame_position) AS_MUST_USE;

#endif
