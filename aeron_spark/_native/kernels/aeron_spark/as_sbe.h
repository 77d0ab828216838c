/* SBE messages to columns: a plan of one template runs over many messages. Spec: 10 §5 to §10, §13, §18.
 *
 *      payloads > as_sbe_batch_open (walks each message, every length checked) > starts of blocks, entries and data
 *               > as_sbe_gather_* (one column after the other, nothing left to check) > Arrow buffers
 *
 * A level is the message's root block or a group; its instances are messages or entries, in order. An instance that is not there
 * (its message can't be decoded) has length -1; what a column reads from it is null.
 * The plan is the caller's and must be right in itself: it is made from a schema, not from messages. Messages may be anything.
 * Thread rule: a batch belongs to one thread at a time; plans are only read. */
#ifndef AERON_SPARK_AS_SBE_H
#define AERON_SPARK_AS_SBE_H

#include "aeron_spark/as_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
typedef enum as_sbe_error_e
{
    AS_SBE_OK = 0,
    AS_SBE_SHORT_HEADER,
    AS_SBE_UNKNOWN_SCHEMA,
    AS_SBE_UNKNOWN_TEMPLATE,
    AS_SBE_HEADER_INCOMPLETE,
    AS_SBE_SHORT_BLOCK,
    AS_SBE_BLOCK_TOO_SMALL,
    AS_SBE_SHORT_GROUP_HEADER,
    AS_SBE_SHORT_GROUP_ENTRY,
    AS_SBE_GROUP_BLOCK_TOO_SMALL,
    AS_SBE_SHORT_DATA_LENGTH,
    AS_SBE_SHORT_DATA,
    AS_SBE_LIMIT,
    AS_SBE_NEWER_VERSION
} as_sbe_error;

/* An integer of a header: `size` bytes at `offset`, or a constant if size is 0. */
typedef struct as_sbe_role
{
    int32_t offset;
    int32_t size;
    bool is_signed;
    int64_t constant;
} as_sbe_role;

/* Level 0 is the root block: of its members only `need`, `first_child`, `first_data` and `data_count` count. Children follow their
 * parent. */
typedef struct as_sbe_level
{
    int32_t first_child;  /* -1: none */
    int32_t next_sibling; /* -1: none */
    int64_t since;
    int32_t header_size;
    as_sbe_role block_length;
    as_sbe_role count;
    as_sbe_role groups_told; /* how many groups, and data, follow each block; a constant -1 where the wire does not tell */
    as_sbe_role data_told;
    int32_t need;         /* end of its last field that every version has */
    int32_t first_data;
    int32_t data_count;
} as_sbe_level;

typedef struct as_sbe_data
{
    int64_t since;
    int32_t head;        /* bytes that must be there before the length can be read */
    int32_t offset;      /* of the bytes, from the length's composite on */
    as_sbe_role length;
} as_sbe_data;

typedef struct as_sbe_plan
{
    int32_t header_size;
    as_sbe_role block_length;
    as_sbe_role template_id;
    as_sbe_role schema_id;
    as_sbe_role version;
    as_sbe_role groups_told;
    as_sbe_role data_told;
    bool is_big_endian;
    bool wants_own_version; /* the header has no block length: only the schema's version can be read */
    int64_t own_template_id;
    int64_t own_schema_id;
    int64_t own_version;
    int64_t max_entries;    /* of groups whose entries take no bytes */
    const as_sbe_level *levels;
    int32_t level_count;
    const as_sbe_data *data;
    int32_t data_count;
} as_sbe_plan;

typedef struct as_sbe_batch as_sbe_batch;

/* What a message's header says. -1 where it is too short for a header. */
as_result as_sbe_template_ids(const as_sbe_plan *plan, const uint8_t *bytes, const int64_t *starts, const int64_t *ends,
    int64_t count, int64_t *template_ids);

/* Walks `count` messages, each within [starts[i], ends[i]) of `bytes`; all borrowed until close. AS_E_INTERNAL: no memory. Messages
 * that can't be decoded are told by as_sbe_batch_errors. */
as_result as_sbe_batch_open(const as_sbe_plan *plan, const uint8_t *bytes, const int64_t *starts, const int64_t *ends, int64_t count,
    as_sbe_batch **batch);
void as_sbe_batch_close(as_sbe_batch *batch);
/* Of each message: as_sbe_error, where it showed or how many bytes it took, and the version it was written by. Valid until close. */
const uint8_t *as_sbe_batch_errors(const as_sbe_batch *batch);
const int64_t *as_sbe_batch_ends(const as_sbe_batch *batch);
int64_t as_sbe_batch_instances(const as_sbe_batch *batch, int32_t level);
/* Of a group: where the entries of its parent's instance i end, for i from -1 on; and whether there is a group at all. */
const int32_t *as_sbe_batch_list_offsets(const as_sbe_batch *batch, int32_t level);
const uint8_t *as_sbe_batch_list_validity(const as_sbe_batch *batch, int32_t level);
/* Bytes of all instances of a data. */
int64_t as_sbe_batch_data_bytes(const as_sbe_batch *batch, int32_t data);

typedef enum as_sbe_charset_e
{
    AS_SBE_BYTES = 0,
    AS_SBE_ASCII,
    AS_SBE_LATIN1,
    AS_SBE_UTF8
} as_sbe_charset;

/* Where a value stands in its level's block, and when it is null. */
typedef struct as_sbe_column
{
    int32_t level;
    int32_t offset;
    int32_t width;          /* of the primitive */
    int32_t repeat;         /* primitives one behind the other: 1, or the length of an array */
    int64_t since;
    int32_t field_end;      /* of the field it belongs to: a block that ends before has none of it */
    bool has_null;
    uint64_t null_bits;
    bool null_is_nan;       /* instead of null_bits */
    bool has_guard;         /* the field's composite is null when the guard is: its first member */
    int32_t guard_offset;
    int32_t guard_width;
    uint64_t guard_bits;
    bool guard_is_nan;
} as_sbe_column;

typedef enum as_sbe_form_e
{
    AS_SBE_FORM_SAME = 0,   /* as wide as the primitive */
    AS_SBE_FORM_WIDEN,      /* an unsigned number to one of twice the width */
    AS_SBE_FORM_DECIMAL,    /* 16 bytes, from an unsigned number */
    AS_SBE_FORM_SIGNED_DECIMAL,
    AS_SBE_FORM_LONG        /* 8 bytes signed, from any integer; what does not fit is null */
} as_sbe_form;

/* `out`: instances * repeat values of the form; `validity`: a bit each, bytes beyond the last bit are left. Values that are null
 * are 0. `factor` (1: none) multiplies decimals and longs; what overflows is null. *nulls counts. */
void as_sbe_gather_values(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_form form, bool is_signed, int64_t factor,
    void *out, uint8_t *validity, int64_t *nulls);
/* Only whether the field is there. */
void as_sbe_gather_presence(const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *validity, int64_t *nulls);
/* Text of char arrays, up to the first NUL, as UTF-8: `capacity` is at least 3 * instances * repeat. Bytes that the charset does not
 * have become U+FFFD. AS_E_USAGE: more than 2 GiB. */
as_result as_sbe_gather_text(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_charset charset, int32_t *offsets,
    uint8_t *out, int64_t capacity, uint8_t *validity, int64_t *nulls);
/* `repeat` bytes an instance as they are. */
void as_sbe_gather_bytes(
    const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *out, uint8_t *validity, int64_t *nulls);
/* Index of an enum's value: `values` (ascending) have the indices `indices`. -1: unknown, *unknown counts. */
void as_sbe_gather_enum(const as_sbe_batch *batch, const as_sbe_column *column, bool is_signed, const int64_t *values,
    const int16_t *indices, int64_t value_count, int16_t *out, uint8_t *validity, int64_t *nulls, int64_t *unknown);
/* Indices of a set's choices that are there: choice k is bit bits[k]. `out` has room for instances * bit_count + 1. */
as_result as_sbe_gather_set(const as_sbe_batch *batch, const as_sbe_column *column, const uint8_t *bits, int64_t bit_count,
    int32_t *offsets, int16_t *out, uint8_t *validity, int64_t *nulls);
/* Data as UTF-8 text, or its bytes. `capacity` at least 3 times the bytes for text. */
as_result as_sbe_gather_data(const as_sbe_batch *batch, int32_t data, as_sbe_charset charset, int32_t *offsets, uint8_t *out,
    int64_t capacity, uint8_t *validity, int64_t *nulls);
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
