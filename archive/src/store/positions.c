/* Position arithmetic of recordings for the public API; see as_archive.h. Spec: 08 §17. */
#include "aeron_spark/as_archive.h"
#include "store/segment_layout.h"

int64_t as_segment_base_position(int64_t start_position, int64_t position, int32_t term_length, int32_t segment_length)
{
    return asi_segment_base(start_position, position, term_length, segment_length);
}

int64_t as_segment_count(int64_t start_position, int64_t stop_position, int32_t term_length, int32_t segment_length)
{
    const int64_t first = asi_term_base(start_position, term_length);
    return (asi_segment_base(start_position, stop_position, term_length, segment_length) - first) / segment_length + 1;
}

int64_t as_segment_first_detachable(int64_t start_position, int32_t term_length, int32_t segment_length)
{
    return asi_term_base(start_position, term_length) + segment_length;
}

int64_t as_segment_last_detachable(
    int64_t start_position, int64_t recorded_position, int32_t term_length, int32_t segment_length)
{
    return asi_segment_base(start_position, recorded_position, term_length, segment_length);
}

int32_t as_position_term_id(int64_t position, int32_t term_length, int32_t initial_term_id)
{
    return asi_segment_term_id(position, term_length, initial_term_id);
}

int32_t as_position_term_offset(int64_t position, int32_t term_length)
{
    return (int32_t)(position & ((int64_t)term_length - 1));
}

int64_t as_position_of(int32_t term_id, int32_t term_offset, int32_t term_length, int32_t initial_term_id)
{
    return ((int64_t)(uint32_t)asi_wrap_sub(term_id, initial_term_id) << asi_log2(term_length)) + term_offset;
}
