/* Reads the recordings of an archive's folder, live or not; no server is needed.
 *
 *      ./read FOLDER
 *
 * prints each recording with its first message and the number of all.
 */
#include <stdio.h>
#include <stdlib.h>

#include "aeron_spark/as_archive.h"

#define ROWS 1024
#define BYTES (16 * 1024 * 1024) /* enough for any message */

static void check(as_result result)
{
    if (AS_OK != result)
    {
        fprintf(stderr, "read: %s\n", as_error_text());
        exit(1);
    }
}

/* Prints the first message of the range and returns the number of all. */
static int64_t read_range(as_segment_reader *reader, as_columns *columns)
{
    int64_t count = 0;
    do
    {
        check(as_segment_reader_next(reader, columns)); /* fills the columns from row 0 */
        if (0 == count && columns->row_count > 0)
        {
            printf("  first, at %ld: %.*s\n", (long)columns->position[0], (int)columns->value_offset[1], columns->value);
        }
        count += columns->row_count;
    }
    while (columns->row_count > 0);
    return count;
}

int main(int argc, char **argv)
{
    as_folder *folder;
    as_columns columns = { .row_capacity = ROWS, .byte_capacity = BYTES };
    columns.position = malloc(ROWS * sizeof(int64_t));
    columns.value_offset = malloc((ROWS + 1) * sizeof(int32_t));
    columns.value = malloc(BYTES);
    if (NULL == columns.position || NULL == columns.value_offset || NULL == columns.value)
    {
        fprintf(stderr, "read: out of memory\n");
        return 1;
    }
    check(as_folder_open(argc > 1 ? argv[1] : "recordings", NULL, &folder));
    for (int64_t i = 0; i < as_folder_recording_count(folder); i++)
    {
        as_recording recording;
        as_recording_extent extent;
        as_segment_reader *reader;
        check(as_folder_recording_at(folder, i, &recording));
        check(as_folder_extent(folder, recording.recording_id, &extent));
        printf("recording %ld: stream %d of %s, %ld to %ld\n", (long)recording.recording_id, recording.stream_id,
            recording.stripped_channel, (long)extent.start_position, (long)extent.limit_position);
        check(as_segment_reader_open(folder, recording.recording_id, extent.start_position, extent.limit_position,
            extent.limit_position, &reader));
        printf("  %ld messages\n", (long)read_range(reader, &columns));
        as_segment_reader_close(reader);
    }
    as_folder_close(folder);
    free(columns.value);
    free(columns.value_offset);
    free(columns.position);
    return 0;
}
