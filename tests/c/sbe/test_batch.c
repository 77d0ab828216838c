/* The walk and the columns of SBE messages over random bytes: whatever a message claims, nothing outside it is read (each lies
 * in a block of memory of its own size, which the sanitizers watch) and the rows are consistent. tests/sbe compares values
 * with a plain decoder. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_sbe.h"
#include "check.h"
#include "support.h"

#define ROLE(at, bytes) { .offset = (at), .size = (bytes) }
#define NOT_TOLD { .constant = -1 }

/* u64, u16 - group { u32 - group { u8 } - data } - group { u64 } - data since 2 */
static const as_sbe_level LEVELS[] = {
    { .first_child = 1, .next_sibling = -1, .need = 10, .first_data = 0, .data_count = 1 },
    { .first_child = 2, .next_sibling = 3, .header_size = 4, .block_length = ROLE(0, 2), .count = ROLE(2, 2),
        .groups_told = NOT_TOLD, .data_told = NOT_TOLD, .need = 4, .first_data = 1, .data_count = 1 },
    { .first_child = -1, .next_sibling = -1, .header_size = 2, .block_length = ROLE(0, 1), .count = ROLE(1, 1),
        .groups_told = NOT_TOLD, .data_told = NOT_TOLD, .need = 1, .first_data = 2 },
    { .first_child = -1, .next_sibling = -1, .since = 1, .header_size = 12, .block_length = ROLE(0, 2), .count = ROLE(4, 4),
        .groups_told = ROLE(2, 1), .data_told = ROLE(3, 1), .need = 8, .first_data = 2 }
};
static const as_sbe_data DATA[] = {
    { .since = 2, .head = 4, .offset = 4, .length = ROLE(0, 4) },
    { .head = 1, .offset = 1, .length = ROLE(0, 1) }
};

static as_sbe_plan make_plan(bool is_big_endian)
{
    return (as_sbe_plan){
        .header_size = 10, .block_length = ROLE(0, 2), .template_id = ROLE(2, 2), .schema_id = ROLE(4, 2), .version = ROLE(6, 2),
        .groups_told = ROLE(8, 1), .data_told = ROLE(9, 1), .is_big_endian = is_big_endian, .own_template_id = 1,
        .own_schema_id = 1, .own_version = 2, .max_entries = 1000, .levels = LEVELS, .level_count = 4, .data = DATA,
        .data_count = 2
    };
}

typedef struct writer
{
    uint8_t bytes[4096];
    int64_t length;
    bool is_big_endian;
} writer;

static void put(writer *w, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
    {
        const int byte = w->is_big_endian ? size - 1 - i : i;
        w->bytes[w->length++] = (uint8_t)(value >> 8 * byte);
    }
}

static void put_message(writer *w, asi_rand *rand, uint16_t version)
{
    put(w, 10, 2);
    put(w, 1, 2);
    put(w, 1, 2);
    put(w, version, 2);
    put(w, 2, 1);
    put(w, 1, 1);
    put(w, asi_rand_u64(rand), 8);
    put(w, asi_rand_u64(rand), 2);
    const uint64_t entries = asi_rand_u64(rand) % 4;
    put(w, 4, 2);
    put(w, entries, 2);
    for (uint64_t i = 0; i < entries; i++)
    {
        const uint64_t inner = asi_rand_u64(rand) % 3;
        const uint64_t length = asi_rand_u64(rand) % 5;
        put(w, i, 4);
        put(w, 1, 1);
        put(w, inner, 1);
        put(w, asi_rand_u64(rand), (int)inner);
        put(w, length, 1);
        put(w, asi_rand_u64(rand), (int)length);
    }
    if (version >= 1)
    {
        const uint64_t late = asi_rand_u64(rand) % 3;
        put(w, 8, 2);
        put(w, 0, 2);
        put(w, late, 4);
        put(w, 0, 4);
        for (uint64_t i = 0; i < late; i++)
        {
            put(w, i, 8);
        }
    }
    if (version >= 2)
    {
        put(w, 3, 4);
        put(w, 0x414243, 3);
    }
}

static int64_t count_valid(const uint8_t *validity, int64_t count)
{
    int64_t valid = 0;
    for (int64_t i = 0; i < count; i++)
    {
        valid += validity[i / 8] >> i % 8 & 1;
    }
    return valid;
}

/* Everything that can be made of one level's first eight bytes. */
static void gather_all(const as_sbe_batch *batch, int32_t level, int32_t width)
{
    const int64_t count = as_sbe_batch_instances(batch, level);
    uint8_t *out = malloc((size_t)count * 64 + 64);
    uint8_t *validity = malloc((size_t)count / 8 + 1);
    int32_t *offsets = malloc(((size_t)count + 1) * sizeof(*offsets));
    CHECK(NULL != out && NULL != validity && NULL != offsets);
    as_sbe_column column = { .level = level, .width = width, .repeat = 1, .field_end = width, .has_null = true, .null_bits = 1 };
    int64_t nulls;
    for (int form = AS_SBE_FORM_SAME; form <= AS_SBE_FORM_LONG; form++)
    {
        if (AS_SBE_FORM_WIDEN != form || width < 8)
        {
            as_sbe_task task = { .column = column, .form = (as_sbe_form)form, .is_signed = 0 != form % 2, .factor = form % 3 ? 1 : 1000,
                .divisor = form % 2 ? 1 : 7, .out = out, .validity = validity };
            as_sbe_gather(batch, &task, 1);
            CHECK(0 == task.nulls || count_valid(validity, count) + task.nulls == count);
        }
    }
    const int64_t values[] = { 0, 1, 2 };
    const int16_t indices[] = { 0, 1, 2 };
    const uint8_t bits[] = { 0, 3, 7 };
    int16_t of_byte[256];
    memset(of_byte, 0xff, sizeof(of_byte));
    as_sbe_task names = { .column = column, .form = AS_SBE_FORM_ENUM, .of_byte = of_byte, .values = values, .indices = indices,
        .value_count = 3, .out = out, .validity = validity };
    as_sbe_gather(batch, &names, 1);
    CHECK(names.nulls + names.unknown <= count);
    CHECK_I64(as_sbe_gather_set(batch, &column, bits, 3, offsets, (int16_t *)(void *)out, validity, &nulls), AS_OK);
    CHECK(offsets[count] <= 3 * count);
    column.repeat = width;
    column.width = 1;
    column.has_guard = true;
    column.guard_width = 1;
    as_sbe_gather_bytes(batch, &column, out, validity, &nulls);
    for (int charset = AS_SBE_BYTES; charset <= AS_SBE_UTF8; charset++)
    {
        CHECK_I64(as_sbe_gather_text(batch, &column, (as_sbe_charset)charset, offsets, out, 64 * count, validity, &nulls), AS_OK);
    }
    as_sbe_gather_presence(batch, &column, validity, &nulls);
    CHECK(0 == nulls || count_valid(validity, count) + nulls == count);
    free(out);
    free(validity);
    free(offsets);
}

static void check_lists(const as_sbe_batch *batch, int32_t level, int32_t parent)
{
    const int64_t parents = as_sbe_batch_instances(batch, parent);
    const int32_t *offsets = as_sbe_batch_list_offsets(batch, level);
    CHECK_I64(offsets[0], 0);
    for (int64_t i = 0; i < parents; i++)
    {
        CHECK(offsets[i] <= offsets[i + 1]);
    }
    CHECK_I64(offsets[parents], as_sbe_batch_instances(batch, level));
}

static void gather_data(const as_sbe_batch *batch, int32_t data, int32_t level)
{
    const int64_t count = as_sbe_batch_instances(batch, level);
    const int64_t bytes = as_sbe_batch_data_bytes(batch, data);
    uint8_t *out = malloc(3 * (size_t)bytes + 1);
    uint8_t *validity = malloc((size_t)count / 8 + 1);
    int32_t *offsets = malloc(((size_t)count + 1) * sizeof(*offsets));
    CHECK(NULL != out && NULL != validity && NULL != offsets);
    int64_t nulls;
    CHECK_I64(as_sbe_gather_data(batch, data, AS_SBE_BYTES, offsets, out, bytes, validity, &nulls), AS_OK);
    CHECK_I64(offsets[count], bytes);
    CHECK_I64(as_sbe_gather_data(batch, data, AS_SBE_UTF8, offsets, out, 3 * bytes, validity, &nulls), AS_OK);
    free(out);
    free(validity);
    free(offsets);
}

static int64_t run_batch(const as_sbe_plan *plan, const uint8_t *bytes, int64_t length, const int64_t *starts, const int64_t *ends,
    int64_t count)
{
    as_sbe_batch *batch;
    int64_t right = 0;
    CHECK_I64(as_sbe_batch_open(plan, &batch), AS_OK);
    CHECK_I64(as_sbe_batch_walk(batch, bytes, starts, ends, count), AS_OK);
    CHECK_I64(as_sbe_batch_instances(batch, 0), count);
    for (int64_t i = 0; i < count; i++)
    {
        right += AS_SBE_OK == as_sbe_batch_errors(batch)[i];
        CHECK(as_sbe_batch_ends(batch)[i] >= 0 && as_sbe_batch_ends(batch)[i] <= length);
    }
    check_lists(batch, 1, 0);
    check_lists(batch, 2, 1);
    check_lists(batch, 3, 0);
    gather_all(batch, 0, 8);
    gather_all(batch, 1, 4);
    gather_all(batch, 2, 1);
    gather_all(batch, 3, 8);
    gather_data(batch, 0, 0);
    gather_data(batch, 1, 1);
    as_sbe_batch_close(batch);
    return right;
}

static void right_messages_of_each_version(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 200; round++)
    {
        const as_sbe_plan plan = make_plan(round % 2);
        writer w = { .is_big_endian = round % 2 };
        int64_t starts[16];
        int64_t ends[16];
        for (int i = 0; i < 16; i++)
        {
            starts[i] = w.length;
            put_message(&w, &rand, (uint16_t)(asi_rand_u64(&rand) % 3));
            ends[i] = w.length;
        }
        CHECK_I64(run_batch(&plan, w.bytes, w.length, starts, ends, 16), 16);
    }
}

/* One message in memory of exactly its size, with bytes changed: newer versions and large counts among them. */
static void changed_messages(void)
{
    asi_rand rand = test_rand();
    int64_t right = 0;
    for (int round = 0; round < 20000; round++)
    {
        const as_sbe_plan plan = make_plan(round % 2);
        writer w = { .is_big_endian = round % 2 };
        put_message(&w, &rand, (uint16_t)(asi_rand_u64(&rand) % 5));
        const int64_t length = 1 + (int64_t)(asi_rand_u64(&rand) % (uint64_t)w.length);
        const int64_t kept = 0 == asi_rand_u64(&rand) % 3 ? length : w.length;
        for (uint64_t changes = asi_rand_u64(&rand) % 4; changes > 0; changes--)
        {
            const uint64_t value = asi_rand_u64(&rand);
            w.bytes[asi_rand_u64(&rand) % (uint64_t)kept] = (uint8_t)(value % 3 ? value >> 8 : 0xff);
        }
        uint8_t *exact = malloc((size_t)kept);
        CHECK(NULL != exact);
        memcpy(exact, w.bytes, (size_t)kept);
        const int64_t start = 0;
        right += run_batch(&plan, exact, kept, &start, &kept, 1);
        free(exact);
    }
    CHECK(right > 1000 && right < 19000);
}

/* Blocks of every length and version, in one batch: which are too short, with needs of newer versions and without. */
static void short_blocks_by_version(void)
{
    static const as_sbe_need NEEDS[] = { { .since = 1, .end = 8 }, { .since = 2, .end = 12 } };
    as_sbe_level level = { .first_child = -1, .next_sibling = -1, .need = 4 };
    const as_sbe_plan plan = { .header_size = 8, .block_length = ROLE(0, 2), .template_id = ROLE(2, 2), .schema_id = ROLE(4, 2),
        .version = ROLE(6, 2), .groups_told = NOT_TOLD, .data_told = NOT_TOLD, .own_template_id = 1, .own_schema_id = 1,
        .own_version = 2, .levels = &level, .level_count = 1 };
    enum { VERSIONS = 4, LENGTHS = 16, COUNT = VERSIONS * LENGTHS };
    writer w = { .is_big_endian = false };
    int64_t starts[COUNT];
    int64_t ends[COUNT];
    for (int i = 0; i < COUNT; i++)
    {
        starts[i] = w.length;
        put(&w, (uint64_t)(i % LENGTHS), 2);
        put(&w, 1, 2);
        put(&w, 1, 2);
        put(&w, (uint64_t)(i / LENGTHS), 2);
        w.length += i % LENGTHS;
        ends[i] = w.length;
    }
    for (level.need_count = 0; level.need_count <= 2; level.need_count++)
    {
        level.needs = NEEDS;
        as_sbe_batch *batch;
        CHECK_I64(as_sbe_batch_open(&plan, &batch), AS_OK);
        CHECK_I64(as_sbe_batch_walk(batch, w.bytes, starts, ends, COUNT), AS_OK);
        int64_t errors = 0;
        int64_t cut[2] = { 0 };
        for (int i = 0; i < COUNT; i++)
        {
            const int version = i / LENGTHS;
            const int length = i % LENGTHS;
            bool is_short = length < level.need;
            for (int need = 0; need < 2; need++)
            {
                const bool is_cut = version >= NEEDS[need].since && length < NEEDS[need].end;
                is_short |= is_cut && need < level.need_count;
            }
            for (int need = 0; need < 2; need++)
            {
                cut[need] += !is_short && version >= NEEDS[need].since && length < NEEDS[need].end;
            }
            /* An apparent error in a message newer than the schema may be a new part of it. */
            const as_sbe_error error = version > plan.own_version ? AS_SBE_NEWER_VERSION : AS_SBE_BLOCK_TOO_SMALL;
            CHECK_I64(as_sbe_batch_errors(batch)[i], is_short ? error : AS_SBE_OK);
            errors += is_short;
        }
        CHECK_I64(as_sbe_batch_error_count(batch), errors);
        CHECK(2 != level.need_count || 0 == cut[0] + cut[1]);
        for (int need = 0; need < 2; need++)
        {
            CHECK_I64(as_sbe_batch_short(batch, 0, NEEDS[need].since, NEEDS[need].end), cut[need]);
        }
        as_sbe_batch_close(batch);
    }
}

static void no_messages(void)
{
    const as_sbe_plan plan = make_plan(false);
    const int64_t nothing = 0;
    CHECK_I64(run_batch(&plan, NULL, 0, &nothing, &nothing, 0), 0);
    CHECK_I64(run_batch(&plan, (const uint8_t *)"", 0, &nothing, &nothing, 1), 0);
}

int main(void)
{
    RUN(right_messages_of_each_version);
    RUN(changed_messages);
    RUN(short_blocks_by_version);
    RUN(no_messages);
    return 0;
}
