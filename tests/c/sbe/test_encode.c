/* Messages written from columns are walked again and equal the columns, in memory of exactly their size; and random payloads
 * are cut into frames that lie within them. tests/sbe compares values. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_sbe.h"
#include "check.h"
#include "support.h"

#define ROLE(at, bytes) { .offset = (at), .size = (bytes) }
#define NOT_TOLD { .constant = -1 }
#define MESSAGES 9

/* u32 - group { u16 - data } */
static const as_sbe_level LEVELS[] = {
    { .first_child = 1, .next_sibling = -1, .need = 4 },
    { .first_child = -1, .next_sibling = -1, .header_size = 4, .block_length = ROLE(0, 2), .count = ROLE(2, 2), .groups_told = NOT_TOLD,
        .data_told = NOT_TOLD, .need = 2, .data_count = 1 }
};
static const as_sbe_data DATA[] = { { .head = 1, .offset = 1, .length = ROLE(0, 1) } };

static const as_sbe_plan PLAN = {
    .header_size = 8, .block_length = ROLE(0, 2), .template_id = ROLE(2, 2), .schema_id = ROLE(4, 2), .version = ROLE(6, 2),
    .groups_told = NOT_TOLD, .data_told = NOT_TOLD, .own_template_id = 1, .own_schema_id = 1, .own_version = 0, .max_entries = 1000,
    .levels = LEVELS, .level_count = 2, .data = DATA, .data_count = 1
};

static void what_is_written_is_walked(void)
{
    static const uint8_t ROOT_HEADER[] = { 4, 0, 1, 0, 1, 0, 0, 0 };
    static const uint8_t GROUP_HEADER[] = { 2, 0, 0, 0 };
    asi_rand rand = test_rand();
    for (int round = 0; round < 500; round++)
    {
        int64_t entries[MESSAGES + 1] = { 0 };
        for (int i = 0; i < MESSAGES; i++)
        {
            entries[i + 1] = entries[i] + (int64_t)(asi_rand_u64(&rand) % 4);
        }
        const int64_t total = entries[MESSAGES];
        int64_t content[4 * MESSAGES + 1] = { 0 };
        uint8_t bytes[256 * 4 * MESSAGES];
        uint8_t values[4 * 4 * MESSAGES];
        memset(bytes, 7, sizeof(bytes));
        memset(values, 9, sizeof(values));
        for (int64_t i = 0; i < total; i++)
        {
            content[i + 1] = content[i] + (int64_t)(asi_rand_u64(&rand) % 256);
        }
        const as_sbe_wire_field fields[] = { { .width = 4, .values = values }, { .width = 2, .values = values } };
        const as_sbe_wire_data data[] = { { .head = 1, .length = ROLE(0, 1), .offsets = content, .bytes = bytes } };
        const as_sbe_wire_level levels[] = {
            { .first_child = 1, .next_sibling = -1, .header_size = 8, .header = ROOT_HEADER, .block_length = 4, .field_count = 1 },
            { .first_child = -1, .next_sibling = -1, .header_size = 4, .header = GROUP_HEADER, .count = ROLE(2, 2), .offsets = entries,
                .block_length = 2, .first_field = 1, .field_count = 1, .data_count = 1 }
        };
        const as_sbe_wire_plan plan = { .levels = levels, .fields = fields, .data = data };
        int64_t starts[MESSAGES + 1];
        const int64_t size = as_sbe_encode(&plan, MESSAGES, NULL, 0, starts);
        CHECK_I64(size, MESSAGES * 16 + total * 3 + content[total]);
        uint8_t *out = malloc((size_t)size);
        CHECK(NULL != out);
        /* Too little room: nothing beyond it is written. */
        CHECK_I64(as_sbe_encode(&plan, MESSAGES, out, size / 2, starts), size);
        CHECK_I64(as_sbe_encode(&plan, MESSAGES, out, size, starts), size);
        as_sbe_batch *batch;
        CHECK_I64(as_sbe_batch_open(&PLAN, &batch), AS_OK);
        CHECK_I64(as_sbe_batch_walk(batch, out, starts, starts + 1, MESSAGES), AS_OK);
        CHECK_I64(as_sbe_batch_error_count(batch), 0);
        CHECK_I64(as_sbe_batch_instances(batch, 1), total);
        CHECK_I64(as_sbe_batch_data_bytes(batch, 0), content[total]);
        for (int i = 0; i < MESSAGES; i++)
        {
            CHECK_I64(as_sbe_batch_ends(batch)[i], starts[i + 1] - starts[i]);
        }
        as_sbe_batch_close(batch);
        free(out);
    }
}

static void frames_of_chance(void)
{
    asi_rand rand = test_rand();
    int64_t good = 0;
    for (int round = 0; round < 20000; round++)
    {
        const as_sbe_framing framing = {
            .payload_skip = round % 3, .packet_header = round % 2 ? 4 : 0, .count = { .offset = 1, .size = round % 4 == 1 ? 1 : 0 },
            .size = { .offset = round % 5 ? 0 : 2, .size = 1 << round % 3 }, .is_big_endian = 0 != round % 7 % 2,
            .size_adds = round % 6 ? 0 : 2, .skip = 2 + round % 4, .mark_offset = 0, .mark_count = round % 8 ? 0 : 1,
            .quiet_mark = { (uint8_t)(round % 5), (uint8_t)(round % 3) }, .quiet_bytes = 0 == round % 9 ? 2 + round % 2 : 0
        };
        const int64_t length = (int64_t)(asi_rand_u64(&rand) % 40);
        uint8_t *payload = malloc((size_t)length + 1);
        CHECK(NULL != payload);
        uint8_t *exact = realloc(payload, length > 0 ? (size_t)length : 1);
        CHECK(NULL != exact);
        for (int64_t i = 0; i < length; i++)
        {
            exact[i] = (uint8_t)(asi_rand_u64(&rand) % 12);
        }
        const int64_t offsets[] = { 0, length / 2, length };
        int64_t starts[64];
        int64_t ends[64];
        int64_t payloads[64];
        uint8_t errors[64];
        const int64_t count = as_sbe_frames(&framing, exact, offsets, 2, 64, starts, ends, payloads, errors);
        CHECK(count <= 64);
        for (int64_t i = 0; i < count; i++)
        {
            CHECK(starts[i] >= offsets[payloads[i]] && starts[i] <= ends[i] && ends[i] <= offsets[payloads[i] + 1]);
            CHECK(AS_SBE_OK == errors[i] || starts[i] == ends[i]);
            good += AS_SBE_OK == errors[i];
        }
        free(exact);
    }
    CHECK(good > 1000);
}

int main(void)
{
    RUN(what_is_written_is_walked);
    RUN(frames_of_chance);
    return 0;
}
