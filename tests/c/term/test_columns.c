/* Goal: columns hold exactly the whole messages of a range, whatever cuts, padding, faults and capacities come, and a range
 * read in pieces gives the same rows as read at once. Method: a stock log checked against its payload rule; hand-made terms;
 * a random term read in random pieces against a model. Spec: 02 §10.4. */
#include "term/columns.h"

#include "log_fixture.h"

#define ROWS 512
#define BYTES (1 << 20)

typedef struct column_set
{
    as_columns columns;
    int64_t position[ROWS];
    int64_t next_position[ROWS];
    int64_t reserved_value[ROWS];
    int32_t session_id[ROWS];
    int32_t stream_id[ROWS];
    int32_t term_id[ROWS];
    int32_t term_offset[ROWS];
    uint8_t flags[ROWS];
    int32_t value_offset[ROWS + 1];
    int32_t value_end[ROWS];
    uint8_t *value;
} column_set;

/* `value` is exactly byte_capacity long, so that writing past it is caught. */
static column_set *columns_create(int64_t row_capacity, int64_t byte_capacity)
{
    column_set *set = calloc(1, sizeof(*set));
    set->value = malloc((size_t)byte_capacity + (0 == byte_capacity));
    set->columns = (as_columns){
        .row_capacity = row_capacity,
        .byte_capacity = byte_capacity,
        .position = set->position,
        .next_position = set->next_position,
        .reserved_value = set->reserved_value,
        .session_id = set->session_id,
        .stream_id = set->stream_id,
        .term_id = set->term_id,
        .term_offset = set->term_offset,
        .flags = set->flags,
        .value_offset = set->value_offset,
        .value = set->value,
    };
    return set;
}

static void columns_delete(column_set *set)
{
    free(set->value);
    free(set);
}

static asi_columns_range range_of(const asi_log *log, int32_t partition, int64_t from, int64_t to)
{
    return (asi_columns_range){
        .term = log->terms[partition],
        .term_length = TERM,
        .term_position = (int64_t)partition * TERM,
        .begin_limit = to,
        .data_limit = to,
        .check_headers = true,
        .term_id = asi_wrap_add(log->initial_term_id, partition),
        .stream_id = STREAM,
        .offset = from,
    };
}

static void check_value(const column_set *set, int64_t row, int64_t length, uint8_t byte)
{
    const int32_t end = NULL != set->columns.value_end ? set->value_end[row] : set->value_offset[row + 1];
    CHECK_I64(end - set->value_offset[row], length);
    for (int32_t at = set->value_offset[row]; at < end; at++)
    {
        CHECK_I64(set->value[at], byte);
    }
}

static void reads_messages_and_skips_padding(void)
{
    asi_log log = log_create(5, 5, 0);
    int64_t at = put_frame(&log, 0, 0, 5, ASI_FLAG_UNFRAGMENTED, 'a');
    frame_at(&log, 0, at)->type = ASI_FRAME_PAD;
    at = put_frame(&log, 0, at, 100, ASI_FLAG_UNFRAGMENTED, 'p');
    frame_at(&log, 0, 64)->type = ASI_FRAME_PAD;
    const int64_t second = at;
    at = put_frame(&log, 0, at, 0, ASI_FLAG_UNFRAGMENTED, 0);
    const int64_t third = at;
    at = put_frame(&log, 0, at, 1376, ASI_FLAG_BEGIN, 'b');
    at = put_frame(&log, 0, at, 1376, 0, 'b');
    at = put_frame(&log, 0, at, 3, ASI_FLAG_END, 'b');

    column_set *set = columns_create(ROWS, BYTES);
    asi_columns_range range = range_of(&log, 0, 0, TERM);
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(range.offset, at);
    CHECK_I64(set->columns.row_count, 3);
    CHECK_I64(set->columns.byte_count, 5 + 2755);
    check_value(set, 0, 5, 'a');
    check_value(set, 1, 0, 0);
    check_value(set, 2, 2755, 'b');
    CHECK_I64(set->position[1], second);
    CHECK_I64(set->next_position[1], second + 32);
    CHECK_I64(set->position[2], third);
    CHECK_I64(set->next_position[2], at);
    CHECK_I64(set->reserved_value[2], third * 10);
    CHECK_I64(set->session_id[2], SESSION);
    CHECK_I64(set->stream_id[2], STREAM);
    CHECK_I64(set->term_id[2], 5);
    CHECK_I64(set->term_offset[2], third);
    CHECK_I64(set->flags[2], ASI_FLAG_UNFRAGMENTED);
    CHECK_I64(range.skipped_fragments, 0);
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END); /* nothing new: no row, no harm */
    CHECK_I64(set->columns.row_count, 3);
    columns_delete(set);

    as_columns none = { .row_capacity = ROWS }; /* no column asked for: rows are counted */
    range = range_of(&log, 0, 0, TERM);
    CHECK_I64(asi_columns_append(&range, &none), ASI_COLUMNS_END);
    CHECK_I64(none.row_count, 3);
    CHECK_I64(none.byte_count, 0);
    log_delete(&log);
}

static void stops_at_capacities(void)
{
    asi_log log = log_create(5, 5, 0);
    int64_t at = put_frame(&log, 0, 0, 10, ASI_FLAG_UNFRAGMENTED, 'a');
    const int64_t second = at;
    at = put_frame(&log, 0, at, 1376, ASI_FLAG_BEGIN, 'b');
    at = put_frame(&log, 0, at, 24, ASI_FLAG_END, 'b');
    const int64_t offsets[] = { 0, second, at };
    static const struct { int64_t rows; int64_t bytes; asi_columns_stop stop; int64_t count; int64_t needed; } ROWS_OF_LIMITS[] = {
        { 2, 1410, ASI_COLUMNS_END, 2, 0 },
        { 1, 1410, ASI_COLUMNS_FULL, 1, 0 },
        { 2, 1409, ASI_COLUMNS_FULL, 1, 1400 },
        { 2, 10, ASI_COLUMNS_FULL, 1, 1400 },
        { 2, 9, ASI_COLUMNS_TOO_LARGE, 0, 10 },
        { 2, 0, ASI_COLUMNS_TOO_LARGE, 0, 10 },
        { 0, 100, ASI_COLUMNS_FULL, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS_OF_LIMITS) / sizeof(ROWS_OF_LIMITS[0]); i++)
    {
        column_set *set = columns_create(ROWS_OF_LIMITS[i].rows, ROWS_OF_LIMITS[i].bytes);
        asi_columns_range range = range_of(&log, 0, 0, TERM);
        CHECK_I64(asi_columns_append(&range, &set->columns), ROWS_OF_LIMITS[i].stop);
        CHECK_I64(set->columns.row_count, ROWS_OF_LIMITS[i].count);
        CHECK_I64(range.needed_bytes, ROWS_OF_LIMITS[i].needed);
        CHECK_I64(range.offset, offsets[ROWS_OF_LIMITS[i].count]);
        columns_delete(set);
    }
    log_delete(&log);
}

static void keeps_unfinished_messages_for_later(void)
{
    asi_log log = log_create(5, 5, 0);
    const int64_t first = put_frame(&log, 0, 0, 10, ASI_FLAG_UNFRAGMENTED, 'a');
    const int64_t second = put_frame(&log, 0, first, 1376, ASI_FLAG_BEGIN, 'b');
    column_set *set = columns_create(ROWS, BYTES);
    asi_columns_range range = range_of(&log, 0, 0, TERM);
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_PARTIAL);
    CHECK_I64(range.offset, first);
    CHECK_I64(set->columns.row_count, 1);
    const int64_t end = put_frame(&log, 0, second, 24, ASI_FLAG_END, 'b');
    range.data_limit = second; /* there, but beyond what counts as committed */
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_PARTIAL);
    range.data_limit = end;
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(range.offset, end);
    CHECK_I64(set->columns.row_count, 2);
    check_value(set, 1, 1400, 'b');
    columns_delete(set);

    set = columns_create(ROWS, BYTES); /* begins before begin_limit, ends behind it: belongs to the range */
    range = range_of(&log, 0, 0, TERM);
    range.begin_limit = first + 32;
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(set->columns.row_count, 2);
    CHECK_I64(range.offset, end);
    columns_delete(set);

    set = columns_create(ROWS, BYTES);
    range = range_of(&log, 0, 0, TERM);
    range.begin_limit = first;
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(set->columns.row_count, 1);
    CHECK_I64(range.offset, first);
    columns_delete(set);
    log_delete(&log);
}

static void passes_over_fragments_without_their_message(void)
{
    asi_log log = log_create(5, 5, 0);
    int64_t at = put_frame(&log, 0, 0, 100, 0, 'x');         /* the middle and end of a message begun before */
    at = put_frame(&log, 0, at, 100, ASI_FLAG_END, 'x');
    at = put_frame(&log, 0, at, 10, ASI_FLAG_UNFRAGMENTED, 'a');
    at = put_frame(&log, 0, at, 100, ASI_FLAG_BEGIN, 'y');   /* its publisher died: */
    const int64_t padding = at;
    at = put_frame(&log, 0, at, 100, 0, 'y');                /* unblocked */
    frame_at(&log, 0, padding)->type = ASI_FRAME_PAD;
    at = put_frame(&log, 0, at, 100, ASI_FLAG_BEGIN, 'z');   /* and another one, followed by a message */
    at = put_frame(&log, 0, at, 11, ASI_FLAG_UNFRAGMENTED, 'b');
    column_set *set = columns_create(ROWS, BYTES);
    asi_columns_range range = range_of(&log, 0, 0, TERM);
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(set->columns.row_count, 2);
    check_value(set, 0, 10, 'a');
    check_value(set, 1, 11, 'b');
    CHECK_I64(range.skipped_fragments, 4);
    CHECK_I64(range.offset, at);
    columns_delete(set);

    (void)put_frame(&log, 0, TERM - 64, 32, ASI_FLAG_BEGIN, 'c'); /* a message never leaves its term */
    set = columns_create(ROWS, BYTES);
    range = range_of(&log, 0, TERM - 64, TERM);
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(range.offset, TERM);
    CHECK_I64(range.skipped_fragments, 1);
    columns_delete(set);
    log_delete(&log);
}

static uint32_t sum_of(const uint8_t *bytes, int64_t length)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < length; i++)
    {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

static void tells_broken_frames(void)
{
    static const struct { int32_t length; int32_t term_offset; int32_t term_id; int32_t stream_id; asi_columns_fault fault; } KINDS[] = {
        { 31, 0, 0, 0, ASI_FAULT_LENGTH }, { 1, 0, 0, 0, ASI_FAULT_LENGTH }, { TERM, 0, 0, 0, ASI_FAULT_LENGTH },
        { INT32_MAX, 0, 0, 0, ASI_FAULT_LENGTH }, { 0, 1, 0, 0, ASI_FAULT_HEADER }, { 0, 0, 1, 0, ASI_FAULT_HEADER },
        { 0, 0, 0, 1, ASI_FAULT_HEADER }
    };
    for (int inside = 0; inside <= 1; inside++)
    {
        for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
        {
            asi_log log = log_create(5, 5, 0);
            const int64_t first = put_frame(&log, 0, 0, 10, ASI_FLAG_UNFRAGMENTED, 'a');
            const int64_t begin = first;
            int64_t at = inside ? put_frame(&log, 0, first, 100, ASI_FLAG_BEGIN, 'b') : first;
            const int64_t broken = at;
            at = put_frame(&log, 0, at, 100, inside ? ASI_FLAG_END : ASI_FLAG_UNFRAGMENTED, 'b');
            asi_frame_header *frame = frame_at(&log, 0, broken);
            frame->frame_length = 0 != KINDS[i].length ? KINDS[i].length : frame->frame_length;
            frame->term_offset += KINDS[i].term_offset;
            frame->term_id += KINDS[i].term_id;
            frame->stream_id += KINDS[i].stream_id;
            column_set *set = columns_create(ROWS, BYTES);
            asi_columns_range range = range_of(&log, 0, 0, TERM);
            CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_BROKEN);
            CHECK_I64(range.fault, KINDS[i].fault);
            CHECK_I64(range.fault_offset, broken);
            CHECK_I64(range.offset, begin);
            CHECK_I64(set->columns.row_count, 1);
            columns_delete(set);
            log_delete(&log);
        }
    }
}

static void checks_sums(void)
{
    asi_log log = log_create(5, 5, 0);
    int64_t at = put_frame(&log, 0, 0, 10, ASI_FLAG_UNFRAGMENTED, 'a');
    const int64_t padding = at;
    at = put_frame(&log, 0, at, 96, ASI_FLAG_UNFRAGMENTED, 'p');
    frame_at(&log, 0, padding)->type = ASI_FRAME_PAD; /* padding carries no sum */
    (void)put_frame(&log, 0, at, 20, ASI_FLAG_UNFRAGMENTED, 'b');
    frame_at(&log, 0, 0)->session_id = (int32_t)sum_of(log.terms[0] + 32, 32);
    frame_at(&log, 0, at)->session_id = (int32_t)sum_of(log.terms[0] + at + 32, 32);
    column_set *set = columns_create(ROWS, BYTES);
    asi_columns_range range = range_of(&log, 0, 0, TERM);
    range.checksum = sum_of;
    range.override_session_id = true;
    range.session_id = -5;
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(set->columns.row_count, 2);
    CHECK_I64(set->session_id[1], -5);
    log.terms[0][at + 32] ^= 1;
    range.offset = 0;
    set->columns.row_count = set->columns.byte_count = 0;
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_BROKEN);
    CHECK_I64(range.fault, ASI_FAULT_CHECKSUM);
    CHECK_I64(range.fault_offset, at);
    columns_delete(set);
    log_delete(&log);
}

/* The captured stock log: term 2 is whole, so all its messages come out as their publisher made them. */
static void reads_a_stock_log(void)
{
    static const int64_t LENGTHS[] = { 100, 1000, 3000, 8 };
    int64_t file_length;
    uint8_t *stock = golden_load_sparse("shm/c-driver-udp-publication.sparse", &file_length);
    const asi_log_metadata *metadata = (const asi_log_metadata *)(const void *)(stock + 3 * TERM);
    column_set *set = columns_create(ROWS, BYTES);
    asi_columns_range range = {
        .term = stock + 2 * TERM,
        .term_length = TERM,
        .term_position = 2 * TERM,
        .begin_limit = TERM,
        .data_limit = TERM,
        .check_headers = true,
        .term_id = asi_wrap_add(metadata->initial_term_id, 2),
        .stream_id = 1002,
    };
    CHECK_I64(asi_columns_append(&range, &set->columns), ASI_COLUMNS_END);
    CHECK_I64(range.term_position + range.offset, 167200);
    CHECK(set->columns.row_count > 25);
    CHECK_I64(set->reserved_value[set->columns.row_count - 1], 149 * 1000003);
    for (int64_t row = 0; row < set->columns.row_count; row++)
    {
        const int64_t i = set->reserved_value[row] / 1000003;
        CHECK_I64(i, 150 - set->columns.row_count + row);
        CHECK_I64(set->session_id[row], 1883060144);
        const int64_t length = set->value_offset[row + 1] - set->value_offset[row];
        CHECK_I64(length, LENGTHS[i % 4]);
        for (int64_t j = 0; j < length; j++)
        {
            CHECK_I64(set->value[set->value_offset[row] + j], (uint8_t)(1002 * 17 + i * 31 + j));
        }
    }
    columns_delete(set);
    free(stock);
}

typedef struct model_row
{
    int64_t position;
    int64_t next_position;
    int64_t length;
    uint8_t byte;
} model_row;

/* Fills a term with random messages, padding and stray fragments; returns the rows that must come out. */
static int64_t fill_term(asi_rand *rand, const asi_log *log, model_row *rows, int64_t *end)
{
    int64_t at = 0;
    int64_t count = 0;
    while (at < TERM - 8192)
    {
        const uint8_t byte = (uint8_t)asi_rand_u64(rand);
        const int64_t begin = at;
        switch (test_rand_below(rand, 8))
        {
            case 0:
                at = put_frame(log, 0, at, (int32_t)test_rand_below(rand, 500), ASI_FLAG_UNFRAGMENTED, byte);
                frame_at(log, 0, begin)->type = ASI_FRAME_PAD;
                break;
            case 1:
                at = put_frame(log, 0, at, (int32_t)test_rand_below(rand, 500), test_rand_below(rand, 2) ? ASI_FLAG_END : 0, byte);
                break;
            case 2:
            {
                int64_t fragments = 1 + test_rand_below(rand, 3);
                const int32_t last = (int32_t)test_rand_below(rand, 1377);
                rows[count] = (model_row){ .position = begin, .length = fragments * 1376 + last, .byte = byte };
                for (uint8_t flags = ASI_FLAG_BEGIN; fragments > 0; fragments--, flags = 0)
                {
                    at = put_frame(log, 0, at, 1376, flags, byte);
                }
                at = put_frame(log, 0, at, last, ASI_FLAG_END, byte);
                rows[count++].next_position = at;
                break;
            }
            default:
                rows[count] = (model_row){ .position = begin, .length = test_rand_below(rand, 400), .byte = byte };
                at = put_frame(log, 0, at, (int32_t)rows[count].length, ASI_FLAG_UNFRAGMENTED, byte);
                rows[count++].next_position = at;
                break;
        }
    }
    *end = at;
    return count;
}

static void check_row(const column_set *set, int64_t row, const model_row *expected)
{
    CHECK_I64(set->position[row], expected->position);
    CHECK_I64(set->next_position[row], expected->next_position);
    CHECK_I64(set->reserved_value[row], expected->position * 10);
    check_value(set, row, expected->length, expected->byte);
}

typedef void (*term_reader)(asi_rand *rand, const asi_log *log, const model_row *rows, int64_t count, int64_t end);

static void read_random_terms(term_reader read)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 200; round++)
    {
        asi_log log = log_create(5, 5, 0);
        static model_row rows[TERM / 32];
        int64_t end;
        const int64_t count = fill_term(&rand, &log, rows, &end);
        read(&rand, &log, rows, count, end);
        log_delete(&log);
    }
}

static void read_into_small_columns(asi_rand *rand, const asi_log *log, const model_row *rows, int64_t count, int64_t end)
{
    int64_t row = 0;
    asi_columns_range range = range_of(log, 0, 0, end);
    while (range.offset < end)
    {
        column_set *set = columns_create(1 + test_rand_below(rand, 20), 1 + test_rand_below(rand, 6000));
        range.begin_limit = range.offset + 1 + test_rand_below(rand, end - range.offset);
        const int64_t before = range.offset;
        const asi_columns_stop stop = asi_columns_append(&range, &set->columns);
        CHECK(ASI_COLUMNS_END == stop || ASI_COLUMNS_FULL == stop || ASI_COLUMNS_TOO_LARGE == stop);
        CHECK(range.offset > before || ASI_COLUMNS_TOO_LARGE == stop || ASI_COLUMNS_FULL == stop);
        CHECK(ASI_COLUMNS_TOO_LARGE != stop || range.needed_bytes == rows[row].length);
        for (int64_t i = 0; i < set->columns.row_count; i++, row++)
        {
            check_row(set, i, &rows[row]);
        }
        columns_delete(set);
    }
    CHECK_I64(row, count);
}

static void random_terms_in_random_pieces(void) { read_random_terms(read_into_small_columns); }

/* As the segment reader does: each piece of the term lies behind the values so far, and its payloads move down over its headers, or
 * stay where they are. */
static void read_among_the_values(asi_rand *rand, const asi_log *log, const model_row *rows, int64_t count, int64_t end)
{
    column_set *set = columns_create(ROWS, 4 * TERM);
    set->columns.value_end = test_rand_below(rand, 2) ? set->value_end : NULL;
    CHECK(count <= ROWS);
    asi_columns_range range = range_of(log, 0, 0, end);
    int64_t length = 0;
    while (range.offset < end)
    {
        uint8_t *to = set->value + set->columns.byte_count;
        to += -(uintptr_t)to % 32;
        length = length < 0 ? -2 * length : 32 * (1 + test_rand_below(rand, 200));
        length = length < end - range.offset ? length : end - range.offset;
        memcpy(to, log->terms[0] + range.offset, (size_t)length);
        memset(to + length, 0xaa, 4096); /* what is behind a piece is no frame */
        range.term = (const uint8_t *)((uintptr_t)to - (uintptr_t)range.offset);
        range.data_limit = range.offset + length;
        const int64_t before = range.offset;
        const asi_columns_stop stop = asi_columns_append(&range, &set->columns);
        CHECK(ASI_COLUMNS_END == stop || ASI_COLUMNS_PARTIAL == stop);
        length = range.offset > before ? 0 : -length; /* a message that is longer than the piece */
    }
    CHECK_I64(set->columns.row_count, count);
    CHECK(NULL == set->columns.value_end || set->value_offset[0] >= (int32_t)sizeof(asi_frame_header)); /* stays behind its header */
    for (int64_t row = 0; row < count; row++)
    {
        check_row(set, row, &rows[row]);
    }
    columns_delete(set);
}

static void random_pieces_among_the_values(void) { read_random_terms(read_among_the_values); }

/* Whatever stands in a term, reading stays inside it and ends. */
static void survives_random_bytes(void)
{
    asi_rand rand = test_rand();
    asi_log log = log_create(5, 5, 0);
    static model_row rows[TERM / 32];
    for (int round = 0; round < 300; round++)
    {
        int64_t end;
        memset(log.terms[0], 0, TERM);
        (void)fill_term(&rand, &log, rows, &end);
        for (int change = 0; change < 20; change++)
        {
            const int64_t at = test_rand_below(&rand, TERM / 32) * 32 + test_rand_below(&rand, 8);
            log.terms[0][at] = (uint8_t)asi_rand_u64(&rand);
        }
        uint8_t *exact = aligned_alloc(32, TERM); /* nothing behind it, so that reading past the term is caught */
        memcpy(exact, log.terms[0], TERM);
        column_set *set = columns_create(ROWS, 100000);
        asi_columns_range range = range_of(&log, 0, 0, TERM);
        range.term = exact;
        range.check_headers = round % 2;
        (void)asi_columns_append(&range, &set->columns);
        CHECK(range.offset >= 0 && range.offset <= TERM);
        columns_delete(set);
        free(exact);
    }
    log_delete(&log);
}

int main(void)
{
    RUN(reads_messages_and_skips_padding);
    RUN(stops_at_capacities);
    RUN(keeps_unfinished_messages_for_later);
    RUN(passes_over_fragments_without_their_message);
    RUN(tells_broken_frames);
    RUN(checks_sums);
    RUN(reads_a_stock_log);
    RUN(random_terms_in_random_pieces);
    RUN(random_pieces_among_the_values);
    RUN(survives_random_bytes);
    return 0;
}
