/* Converts channel URI text to key/value pairs and back. Spec: 05 §2-3.
 *
 * Used by the driver's command handlers, the archive (stripped channels, replay channels) and the Python channel builder. The
 * struct owns a copy of the text. Keys are matched exactly (upstream C matches prefixes, which the specification warns of).
 * The last of repeated keys counts. Values keep every byte between '=' and '|'. Thread rule: plain data. */
#ifndef ASI_WIRE_URI_H
#define ASI_WIRE_URI_H

#include "base/result.h"

#define ASI_URI_MAX_PARAMS 64

typedef enum asi_uri_media
{
    ASI_MEDIA_IPC,
    ASI_MEDIA_UDP
} asi_uri_media;

typedef struct asi_uri
{
    asi_uri_media media;
    bool is_spy;
    int32_t param_count;
    struct
    {
        const char *key;   /* borrowed from text */
        const char *value; /* borrowed from text; NULL for a final "key=" */
    } params[ASI_URI_MAX_PARAMS];
    char text[AS_CHANNEL_MAX_LENGTH + 1]; /* the copy, cut at separators */
} asi_uri;

/* `text` need not be terminated. On failure as_error_code() is ASI_ERR_INVALID_CHANNEL and the class AS_E_USAGE. The struct
 * contains pointers into itself: do not copy it. */
as_result asi_uri_parse_untrusted(asi_uri *uri, const char *text, int64_t length) AS_MUST_USE;
/* NULL if absent. */
const char *asi_uri_get(const asi_uri *uri, const char *key);
/* Typed reads: AS_OK with *value = fallback if absent; AS_E_USAGE with key and value in the text if unparsable. i32 and i64
 * accept decimal, 0x and leading-0 octal like the stock driver. */
as_result asi_uri_get_i32(const asi_uri *uri, const char *key, int32_t fallback, int32_t *value) AS_MUST_USE;
as_result asi_uri_get_i64(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value) AS_MUST_USE;
as_result asi_uri_get_size(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value) AS_MUST_USE;
as_result asi_uri_get_duration_ns(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value) AS_MUST_USE;
as_result asi_uri_get_bool(const asi_uri *uri, const char *key, bool fallback, bool *value) AS_MUST_USE;

/* Appends text to a fixed buffer. Once full, all further appends fail; check at the end. */
typedef struct asi_uri_builder
{
    char text[AS_CHANNEL_MAX_LENGTH + 1];
    int32_t length;
    int32_t param_count;
    bool overflow;
    bool invalid; /* a key or value would be parsed back as something else */
} asi_uri_builder;

void asi_uri_build_start(asi_uri_builder *builder, asi_uri_media media, bool is_spy);
void asi_uri_build_put(asi_uri_builder *builder, const char *key, const char *value);
void asi_uri_build_put_i64(asi_uri_builder *builder, const char *key, int64_t value);
/* AS_E_USAGE if the channel is longer than AS_CHANNEL_MAX_LENGTH, or a key or value cannot be represented. */
as_result asi_uri_build_end(const asi_uri_builder *builder) AS_MUST_USE;

#endif
