/* SBE messages to columns: a plan of one template runs over many messages. Spec: 10 §5-10, §13, §18.
 *
 *      payloads > as_sbe_batch_walk (walks each message, every length checked) > starts of blocks, entries and data
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
    AS_SBE_NEWER_VERSION,
    AS_SBE_FRAME_SIZE,
    AS_SBE_FRAME_TYPE,
    AS_SBE_BAD_ENUM, /* never of a walk: what columns may take for an error */
    AS_SBE_BAD_TEXT
} as_sbe_error;

/* An integer of a header: `size` bytes at `offset`, or a constant if size is 0. */
typedef struct as_sbe_role
{
    int32_t offset;
    int32_t size;
    bool is_signed;
    int64_t constant;
} as_sbe_role;

/* Messages of version `since` on need blocks that reach to `end`. */
typedef struct as_sbe_need
{
    int64_t since;
    int32_t end;
} as_sbe_need;

/* Level 0 is the root block: of its members only the needs, `first_child`, `first_data` and `data_count` count. Children follow
 * their parent. */
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
    const as_sbe_need *needs; /* besides, where a block that cuts off a newer field is an error, too */
    int32_t need_count;
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
    int64_t max_entries;    /* that take no bytes, in one message */
    const as_sbe_level *levels;
    int32_t level_count;
    const as_sbe_data *data;
    int32_t data_count;
} as_sbe_plan;

typedef struct as_sbe_batch as_sbe_batch;
struct as_sbe_task;

/* What a message's header says. -1 where it is too short for a header. */
as_result as_sbe_template_ids(const as_sbe_plan *plan, const uint8_t *bytes, const int64_t *starts, const int64_t *ends,
    int64_t count, int64_t *template_ids) AS_MUST_USE;

/* A batch serves many walks, one after the other, and keeps its memory between them. AS_E_INTERNAL: no memory. `plan` is borrowed
 * until the last walk is read. */
as_result as_sbe_batch_open(const as_sbe_plan *plan, as_sbe_batch **batch) AS_MUST_USE;
void as_sbe_batch_close(as_sbe_batch *batch);
/* Walks `count` messages, each within [starts[i], ends[i]) of `bytes`, which is borrowed until the next walk. AS_E_INTERNAL: no
 * memory. AS_E_USAGE: more entries that take no bytes than 2^20 (or max_entries, if that is more) and 64 for each message; fewer
 * messages may be walked, and one always. as_sbe_batch_errors names messages that can't be decoded. */
as_result as_sbe_batch_walk(as_sbe_batch *batch, const uint8_t *bytes, const int64_t *starts, const int64_t *ends, int64_t count)
    AS_MUST_USE;
/* The same, and as_sbe_gather of the root block's tasks, some messages at a time, while they are in the cache. */
as_result as_sbe_batch_walk_gather(as_sbe_batch *batch, const uint8_t *bytes, const int64_t *starts, const int64_t *ends,
    int64_t count, struct as_sbe_task *tasks, int64_t task_count) AS_MUST_USE;
int64_t as_sbe_batch_error_count(const as_sbe_batch *batch);
/* Of each message: as_sbe_error; and where it showed, or, of the first message, how many bytes it took: of others that were decoded
 * this is undefined. Valid until the next walk. */
const uint8_t *as_sbe_batch_errors(const as_sbe_batch *batch);
const int64_t *as_sbe_batch_ends(const as_sbe_batch *batch);
int64_t as_sbe_batch_instances(const as_sbe_batch *batch, int32_t level);
/* Where an instance's block, and a data's bytes, begin in the walk's bytes. */
const int64_t *as_sbe_batch_starts(const as_sbe_batch *batch, int32_t level);
const int64_t *as_sbe_batch_data_starts(const as_sbe_batch *batch, int32_t data);
/* Of a group: where the entries of its parent's instance i end, for i from -1 on; and whether there is a group at all. */
const int32_t *as_sbe_batch_list_offsets(const as_sbe_batch *batch, int32_t level);
const uint8_t *as_sbe_batch_list_validity(const as_sbe_batch *batch, int32_t level);
/* Bytes of all instances of a data. */
int64_t as_sbe_batch_data_bytes(const as_sbe_batch *batch, int32_t data);
/* Bytes behind the messages that could be decoded, up to where each was said to end. */
int64_t as_sbe_batch_unread(const as_sbe_batch *batch);
/* Instances of version `since` or newer whose block ends before `end`. */
int64_t as_sbe_batch_short(const as_sbe_batch *batch, int32_t level, int64_t since, int32_t end);

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
    AS_SBE_FORM_LONG,       /* 8 bytes signed, from any integer; what does not fit is null */
    AS_SBE_FORM_ENUM,       /* an index of 2 bytes */
    AS_SBE_FORM_DOUBLE      /* 8 bytes, an integer times a power of ten, rounded once; null also where the exponent is not there */
} as_sbe_form;

/* One column of numbers and what becomes of it. `out`: instances * repeat values of the form; `validity`: a bit each, bytes beyond the
 * last bit are left, undefined where `nulls` is 0. Values that are null are 0. */
typedef struct as_sbe_task
{
    as_sbe_column column;
    as_sbe_form form;
    bool is_signed;
    int64_t factor;         /* multiplies decimals and longs; what overflows is null. 1: none */
    int64_t divisor;        /* of longs, rounding down. 1: none */
    uint64_t most;          /* of longs: what is more, or below 0, does not fit. 0: all of 64 bits with a sign fit */
    int32_t shift;          /* of doubles: the power of ten, where no field tells it */
    bool has_exponent;      /* of doubles: the power of ten is a signed byte of the same level */
    as_sbe_column exponent;
    const int16_t *of_byte; /* of an enum of one byte: the index of each, -1 unknown, 0 of the null */
    const int64_t *values;  /* of a wider enum: ascending, with these indices */
    const int16_t *indices;
    int64_t value_count;
    void *out;
    uint8_t *validity;
    int64_t nulls;          /* out: how many are null, how many of them because they do not fit, how many an enum does not know */
    int64_t lost;
    int64_t unknown;
} as_sbe_task;

/* The tasks of one level, in blocks of instances that stay in the cache. */
void as_sbe_gather(const as_sbe_batch *batch, as_sbe_task *tasks, int64_t count);
/* Only whether the field is there. */
void as_sbe_gather_presence(const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *validity, int64_t *nulls);
/* Text of char arrays, up to the first NUL, as UTF-8: `capacity` is at least 3 * instances * repeat. Bytes that the charset does not
 * have become U+FFFD. AS_E_USAGE: more than 2 GiB. Validity is undefined where *nulls is 0, here and below. */
as_result as_sbe_gather_text(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_charset charset, int32_t *offsets,
    uint8_t *out, int64_t capacity, uint8_t *validity, int64_t *nulls) AS_MUST_USE;
/* `repeat` bytes an instance as they are. */
void as_sbe_gather_bytes(
    const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *out, uint8_t *validity, int64_t *nulls);
/* Indices of a set's choices that are there: choice k is bit bits[k]. `out` has room for instances * bit_count + 1. */
as_result as_sbe_gather_set(const as_sbe_batch *batch, const as_sbe_column *column, const uint8_t *bits, int64_t bit_count,
    int32_t *offsets, int16_t *out, uint8_t *validity, int64_t *nulls) AS_MUST_USE;
/* Data as UTF-8 text, or its bytes. `capacity` at least 3 times the bytes for text, and 16 more. */
as_result as_sbe_gather_data(const as_sbe_batch *batch, int32_t data, as_sbe_charset charset, int32_t *offsets, uint8_t *out,
    int64_t capacity, uint8_t *validity, int64_t *nulls) AS_MUST_USE;
/* Whether each of `count` texts is UTF-8, text i in [offsets[i], offsets[i + 1]). */
bool as_sbe_are_utf8(const uint8_t *bytes, const int32_t *offsets, int64_t count);
/* Numbers such texts from 0 by their value: the number of each row, and the first row of each number. Returns how many numbers
 * there are; -1 if they are more than `capacity` (of `first_rows`) or 1,024, or too many of one hash: then nothing is known. */
int64_t as_sbe_distinct(const uint8_t *bytes, const int32_t *offsets, int64_t count, int32_t *numbers, int64_t *first_rows,
    int64_t capacity) AS_MUST_USE;
/* Decimals of 16 bytes, of 64 bits at most, with exponents (stride 0: one for all): to decimals of `digits` and `scale`, where what
 * would lose digits is null; returns how many. `validity` NULL: all are. */
int64_t as_sbe_rescale(const void *mantissas, const int8_t *exponents, int64_t stride, int64_t count, int32_t digits, int32_t scale,
    const uint8_t *validity, void *out, uint8_t *out_validity) AS_MUST_USE;
/* To doubles, rounded once. */
void as_sbe_to_double(const void *mantissas, const int8_t *exponents, int64_t stride, int64_t count, double *out);

typedef enum as_sbe_node_kind_e
{
    AS_SBE_NODE_NUMBERS = 0, /* task `index` of its level, whose values have `width` bytes, with the task's `repeat` */
    AS_SBE_NODE_ENUM,        /* indices likewise, of names */
    AS_SBE_NODE_TEXT,        /* `column`, by as_sbe_gather_text; `is_trimmed`: without spaces at the end */
    AS_SBE_NODE_DATA,        /* data `index`, by as_sbe_gather_data */
    AS_SBE_NODE_STRUCT,      /* of all instances of `level`; with a `column`, null where that is not there */
    AS_SBE_NODE_LIST,        /* group `level` in its `parent`; its one child is a struct of `level` */
    AS_SBE_NODE_ARRAY,       /* a list of `column`'s values; its one child is the numbers of a task with that repeat */
    AS_SBE_NODE_BYTES,       /* `column`, by as_sbe_gather_bytes */
    AS_SBE_NODE_SET,         /* `column`, by as_sbe_gather_set: a list of indices of names, one for each of `bits` */
    AS_SBE_NODE_CONSTANT     /* where `column` is there: the one name, or without names `width` bytes of `value` */
} as_sbe_node_kind;

/* An array. Its children follow it, each with its own behind it. */
typedef struct as_sbe_node
{
    as_sbe_node_kind kind;
    int32_t level;
    int32_t parent;
    int32_t index;
    int32_t width;
    int32_t repeat;
    int32_t child_count;
    as_sbe_charset charset;
    bool is_trimmed;
    uint8_t value[16];
    const as_sbe_column *column;
    int32_t name_count;
    const int32_t *name_offsets;
    const uint8_t *names;
    const uint8_t *bits;
} as_sbe_node;

/* Runs all tasks (those of each level, and how many) and makes one Arrow array by the C data interface: `array` is a struct ArrowArray,
 * to be released by its importer, on any thread. The first node is a struct of level 0. *lost counts what tasks lost. Nothing is made
 * if an enum has *unknown values. AS_E_INTERNAL: no memory. AS_E_USAGE: text of more than 2 GiB. */
as_result as_sbe_export(const as_sbe_batch *batch, const as_sbe_node *nodes, int64_t node_count, as_sbe_task *const *tasks,
    const int64_t *task_counts, void *array, int64_t *lost, int64_t *unknown) AS_MUST_USE;

/* How messages lie in a payload; what is not there has size 0. Offsets and sizes are bytes. */
typedef struct as_sbe_framing
{
    int32_t payload_skip;   /* before anything else */
    int32_t packet_header;
    as_sbe_role count;      /* of messages, in the packet header */
    as_sbe_role size;       /* of a message, in its frame */
    bool is_big_endian;     /* both */
    int64_t size_adds;
    int32_t skip;           /* from the frame's beginning to the message */
    int32_t mark_offset;    /* two bytes that must be one of the marks */
    int32_t mark_count;
    uint8_t marks[4];
    bool mark_is_of_packet;
    uint8_t quiet_mark[2];  /* what packets without messages begin with */
    int32_t quiet_bytes;    /* how long they are at least; at most a packet header; 0: there are none */
} as_sbe_framing;

/* Where the messages of payloads lie, payload i in [offsets[i], offsets[i + 1]). Returns how many there are; the first `capacity` are
 * stored. What is no frame is a message of no bytes with its error, and the last of its payload. */
int64_t as_sbe_frames(const as_sbe_framing *framing, const uint8_t *bytes, const int64_t *offsets, int64_t payload_count,
    int64_t capacity, int64_t *starts, int64_t *ends, int64_t *payloads, uint8_t *errors) AS_MUST_USE;
/* -- encoding: columns to messages ------------------------------------------------------------------------------------------- */

/* Bytes as they go onto the wire: `width` an instance. */
typedef struct as_sbe_wire_field
{
    int32_t offset;
    int32_t width;
    const uint8_t *values;
} as_sbe_wire_field;

typedef struct as_sbe_wire_data
{
    int32_t head;           /* bytes before the content */
    as_sbe_role length;
    const int64_t *offsets; /* of instance i's content: from offsets[i] to offsets[i + 1] */
    const uint8_t *bytes;
} as_sbe_wire_data;

/* Level 0 is the root block. `header` holds what is the same for every instance; a group's count, or a frame's size, is put in. */
typedef struct as_sbe_wire_level
{
    int32_t first_child;    /* -1: none */
    int32_t next_sibling;
    int32_t header_size;
    const uint8_t *header;
    as_sbe_role count;
    const int64_t *offsets; /* of the entries of its parent's instance i */
    int32_t block_length;
    int32_t first_field;
    int32_t field_count;
    int32_t first_data;
    int32_t data_count;
} as_sbe_wire_level;

typedef struct as_sbe_wire_plan
{
    bool is_big_endian;
    const as_sbe_wire_level *levels;
    const as_sbe_wire_field *fields;
    const as_sbe_wire_data *data;
    int32_t frame_size;     /* bytes before the header, 0: none */
    const uint8_t *frame;
    as_sbe_role frame_length;
    bool frame_is_big_endian;
    int64_t frame_adds;     /* what the frame is longer than its length says */
} as_sbe_wire_plan;

/* Writes `count` messages one behind the other and where each begins, and returns how many bytes they take: nothing is written beyond
 * `capacity`, and nothing at all with 0. Counts and lengths must fit their roles; the caller has checked them. */
int64_t as_sbe_encode(const as_sbe_wire_plan *plan, int64_t count, uint8_t *out, int64_t capacity, int64_t *offsets) AS_MUST_USE;
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
