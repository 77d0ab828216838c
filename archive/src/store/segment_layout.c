/* Formats and parses segment names; see segment_layout.h. */
#include "store/segment_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

as_result asi_segment_path(char *to, size_t capacity, const char *dir, int64_t recording_id, int64_t base)
{
    const int length = snprintf(to, capacity, "%s/%" PRId64 "-%" PRId64 ASI_SEGMENT_SUFFIX, dir, recording_id, base);
    if (length < 0 || (size_t)length >= capacity)
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", dir);
    }
    return AS_OK;
}

/* Parses decimal digits without sign, below 2^63. NULL if there are none. */
static const char *parse_number(const char *text, int64_t *number)
{
    int64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
    {
        if (value > (INT64_MAX - 9) / 10)
        {
            return NULL;
        }
        value = value * 10 + (*at - '0');
    }
    if (at == text)
    {
        return NULL;
    }
    *number = value;
    return at;
}

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t text_length = strlen(text);
    const size_t suffix_length = strlen(suffix);
    return text_length >= suffix_length && 0 == strcmp(text + text_length - suffix_length, suffix);
}

asi_segment_name asi_segment_name_parse(const char *name, int64_t *recording_id, int64_t *base)
{
    const bool is_live = has_suffix(name, ASI_SEGMENT_SUFFIX);
    if (!is_live && !has_suffix(name, ASI_SEGMENT_DELETED_SUFFIX))
    {
        return ASI_SEGMENT_NAME_OTHER;
    }
    int64_t id = 0;
    const char *at = parse_number(name, &id);
    if (NULL == at || '-' != *at)
    {
        return ASI_SEGMENT_NAME_OTHER;
    }
    *recording_id = id;
    int64_t position = 0;
    at = parse_number(at + 1, &position);
    if (NULL != at && 0 == strcmp(at, ASI_SEGMENT_SUFFIX))
    {
        *base = position;
        return ASI_SEGMENT_NAME_LIVE;
    }
    const bool is_deleted = NULL != at && (0 == strcmp(at, ASI_SEGMENT_DELETED_SUFFIX) ||
        0 == strcmp(at, ASI_SEGMENT_SUFFIX ASI_SEGMENT_DELETED_SUFFIX));
    if (is_deleted)
    {
        *base = position;
        return ASI_SEGMENT_NAME_DELETED;
    }
    return is_live ? ASI_SEGMENT_NAME_BAD_BASE : ASI_SEGMENT_NAME_OTHER;
}
