/* SBE framing of the archive control protocol, and the engine that reads and writes messages from tables. Spec: 07 §1-2.
 *
 * Used by request.c and event.c, which hold one table row per message. A row reads like the row of the specification.
 *
 *   message:  0 u16 blockLength | 2 u16 templateId | 4 u16 schemaId (101) | 6 u16 version | root block | var data ...
 *   block:    i32 and i64 fields back to back, unaligned, little-endian
 *   var data: u32 length, bytes; right after the block, in declared order; no terminator
 *
 * Reader's rules: the SENDER's blockLength gives the start of var data. Fields that the sender's version does not have keep
 * their null value. Extra bytes, in the block or after the last var data, are ignored. Every length is checked before it is
 * used. Pure functions on the caller's memory; any thread. */
#ifndef ASI_CODEC_HEADER_H
#define ASI_CODEC_HEADER_H

#include <stddef.h>

#include "base/result.h"

#define ASI_CODEC_SCHEMA_ID 101
#define ASI_CODEC_SCHEMA_VERSION 13
#define ASI_CODEC_HEADER_LENGTH 8
#define ASI_CODEC_VAR_LENGTH_MAX 1073741824
#define ASI_CODEC_PROTOCOL_VERSION 0x00010C00         /* 1.12.0 */
#define ASI_CODEC_ARCHIVE_ID_MIN_VERSION 0x00010B00   /* servers from 1.11.0 on answer ArchiveIdRequest */
#define ASI_CODEC_VERSION_MAJOR(version) (((version) >> 16) & 0xFF)
#define ASI_CODEC_VERSION_MINOR(version) (((version) >> 8) & 0xFF)
#define ASI_CODEC_VERSION_PATCH(version) ((version) & 0xFF)

/* Code of a ControlResponse. Spec: 07 §2. */
enum
{
    ASI_CODEC_OK = 0,
    ASI_CODEC_ERROR = 1,
    ASI_CODEC_RECORDING_UNKNOWN = 2,
    ASI_CODEC_SUBSCRIPTION_UNKNOWN = 3
};

/* relevantId of a ControlResponse whose code is ASI_CODEC_ERROR. Spec: 07 §2. */
enum
{
    ASI_CODEC_E_GENERIC = 0,
    ASI_CODEC_E_ACTIVE_LISTING = 1,
    ASI_CODEC_E_ACTIVE_RECORDING = 2,
    ASI_CODEC_E_ACTIVE_SUBSCRIPTION = 3,
    ASI_CODEC_E_UNKNOWN_SUBSCRIPTION = 4,
    ASI_CODEC_E_UNKNOWN_RECORDING = 5,
    ASI_CODEC_E_UNKNOWN_REPLAY = 6,
    ASI_CODEC_E_MAX_REPLAYS = 7,
    ASI_CODEC_E_MAX_RECORDINGS = 8,
    ASI_CODEC_E_INVALID_EXTENSION = 9,
    ASI_CODEC_E_AUTHENTICATION_REJECTED = 10,
    ASI_CODEC_E_STORAGE_SPACE = 11,
    ASI_CODEC_E_UNKNOWN_REPLICATION = 12,
    ASI_CODEC_E_UNAUTHORISED_ACTION = 13,
    ASI_CODEC_E_REPLICATION_CONNECTION_FAILURE = 14,
    ASI_CODEC_E_EMPTY_RECORDING = 15,
    ASI_CODEC_E_INVALID_POSITION = 16
};

/* Bytes inside the decoded message (borrowed, not terminated), or bytes to encode. Length 0: empty or absent. */
typedef struct asi_codec_var
{
    const char *data;
    int64_t length;
} asi_codec_var;

static inline asi_codec_var asi_codec_text(const char *text)
{
    return (asi_codec_var){ .data = text, .length = NULL == text ? 0 : (int64_t)__builtin_strlen(text) };
}

#define ASI_CODEC_FIELDS_MAX 13
#define ASI_CODEC_VARS_MAX 5

typedef struct asi_codec_field
{
    uint8_t size;   /* 4 or 8; 0 ends the list */
    uint8_t since;  /* first schema version that has it */
    uint16_t at;    /* offsetof the member of that size in the plain struct */
    bool is_flag;   /* an enum of two values, 0 and 1; INT32_MIN is its null value */
} asi_codec_field;

typedef struct asi_codec_layout
{
    uint16_t template_id;
    uint16_t block_length;
    const char *name;
    asi_codec_field fields[ASI_CODEC_FIELDS_MAX + 1];
    asi_codec_field vars[ASI_CODEC_VARS_MAX + 1]; /* size: any value but 0; `at` is the offset of an asi_codec_var */
} asi_codec_layout;

/* All messages of one direction; they share one plain struct. */
typedef struct asi_codec_table
{
    const asi_codec_layout *layouts;
    int32_t count;
    const char *what; /* kind of message, for error texts */
} asi_codec_table;

/* The sender's header. Decoding it reads nothing behind it. */
typedef struct asi_codec_header
{
    uint16_t block_length;
    uint16_t template_id;
    uint16_t version;
} asi_codec_header;

/* AS_E_DATA: shorter than a header, or `expected schemaId=101, actual=<n>`. */
as_result asi_codec_header_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_header *header) AS_MUST_USE;
/* NULL if no row has that template id. */
const asi_codec_layout *asi_codec_layout_find(const asi_codec_table *table, int32_t template_id);
/* Returns the sender's header and the row of its template. AS_AGAIN: no row has it; AS_E_DATA as
   asi_codec_header_decode_untrusted. */
as_result asi_codec_layout_find_untrusted(const asi_codec_table *table, const uint8_t *bytes, int64_t length,
    asi_codec_header *header, const asi_codec_layout **layout) AS_MUST_USE;
/* Fills the members of `message` that the sender's version has; the others keep their values. AS_E_DATA, with the message's
 * name: a field or var data does not fit, or an enum has a value that is none; `message` is then partly filled. */
as_result asi_codec_decode_untrusted(const asi_codec_layout *layout, const asi_codec_header *header, const uint8_t *bytes,
    int64_t length, void *message) AS_MUST_USE;
/* Writes header (schema version 13), block and var data. AS_E_USAGE: no row has that template id, or the message is longer
   than capacity. */
as_result asi_codec_encode(const asi_codec_table *table, int32_t template_id, const void *message, uint8_t *to, int64_t capacity,
    int64_t *length) AS_MUST_USE;

#endif
