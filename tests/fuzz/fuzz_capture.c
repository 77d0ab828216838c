/* Captures: whatever the file holds, each row lies within the bytes that were given, the read goes on or ends, and a file in pieces
 * gives the rows that it gives whole. What UDP carries is then read as Aeron's: its extent is that of the frames.
 *
 * An input is the length of the pieces (2 bytes), then the file. First inputs: capture_seeds.py. */
#include "aeron_spark/as_capture.h"
#include "aeron_spark/as_import.h"
#include "fuzz.h"

#define ROWS 16

typedef struct columns
{
    int64_t time_ns[ROWS], start[ROWS], length[ROWS];
    int32_t flow[ROWS];
    uint8_t kind[ROWS];
    uint32_t sequence[ROWS], more[ROWS];
} columns;

typedef struct outcome
{
    as_capture_error error;
    int64_t rows;
    uint64_t digest;
} outcome;

static void digest(outcome *into, uint64_t value) { into->digest = (into->digest ^ value) * UINT64_C(0x100000001b3); }

static void check_datagram(const uint8_t *bytes, int64_t start, int64_t length)
{
    as_datagram found;
    as_datagrams_read(bytes, &start, &length, 1, &found);
    if (AS_DATAGRAM_FRAMES == found.kind)
    {
        CHECK(found.extent > 0 && found.term_offset >= 0 && 0 == found.extent % AS_FRAME_ALIGNMENT);
        CHECK(found.longest >= 0 && found.longest <= length);
    }
}

static void check_rows(const as_capture *capture, const uint8_t *bytes, int64_t length, const columns *rows, int64_t count, outcome *into)
{
    for (int64_t row = 0; row < count; row++)
    {
        CHECK(rows->kind[row] <= AS_CAPTURE_MALFORMED);
        CHECK(rows->start[row] >= 0 && rows->length[row] >= 0 && rows->start[row] + rows->length[row] <= length);
        const bool has_flow = rows->kind[row] <= AS_CAPTURE_FRAGMENT;
        CHECK(has_flow == (NULL != as_capture_flow_at(capture, rows->flow[row])));
        for (int64_t i = 0; i < rows->length[row]; i++)
        {
            digest(into, bytes[rows->start[row] + i]);
        }
        digest(into, (uint64_t)rows->time_ns[row]);
        digest(into, (uint64_t)rows->flow[row] << 8 | rows->kind[row]);
        digest(into, (uint64_t)rows->sequence[row] << 32 | rows->more[row]);
        if (AS_CAPTURE_UDP == rows->kind[row])
        {
            check_datagram(bytes, rows->start[row], rows->length[row]);
        }
    }
    into->rows += count;
}

/* The file in pieces of `step` bytes; what a piece leaves comes again with the next. */
static outcome read_in_pieces(const uint8_t *file, int64_t size, int64_t step)
{
    columns held;
    const as_capture_rows rows = { .time_ns = held.time_ns, .start = held.start, .length = held.length, .flow = held.flow,
        .kind = held.kind, .sequence = held.sequence, .more = held.more };
    outcome found = { .digest = 1 };
    as_capture *capture = as_capture_open();
    CHECK(NULL != capture);
    int64_t from = 0;
    int64_t end = step < size ? step : size;
    while (AS_CAPTURE_FINE == found.error)
    {
        fuzz_input rest = { .at = file + from, .left = end - from };
        int64_t length;
        uint8_t *piece = fuzz_take(&rest, rest.left, &length);
        int64_t count;
        int64_t consumed;
        found.error = as_capture_read(capture, piece, length, end == size, &rows, ROWS, &count, &consumed);
        CHECK(count >= 0 && count <= ROWS && consumed >= 0 && consumed <= length);
        check_rows(capture, piece, length, &held, count, &found);
        free(piece);
        from += consumed;
        if (count == ROWS)
        {
            continue;
        }
        if (end == size)
        {
            CHECK(AS_CAPTURE_FINE != found.error || from == size);
            break;
        }
        end = size - end < step ? size : end + step;
    }
    as_capture_close(capture);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    const int64_t step = 1 + (int64_t)fuzz_u16(&input);
    const outcome whole = read_in_pieces(input.at, input.left, input.left);
    const outcome pieces = read_in_pieces(input.at, input.left, step < input.left / 64 ? input.left / 64 : step);
    CHECK_I64(pieces.rows, whole.rows);
    CHECK(pieces.digest == whole.digest);
    CHECK_I64(pieces.error, whole.error);
    return 0;
}
