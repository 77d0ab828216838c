/* Shared by the tests of the store: golden archive folders, their message lists, columns, small descriptors. */
#ifndef AS_TESTS_STORE_ARCHIVE_SUPPORT_H
#define AS_TESTS_STORE_ARCHIVE_SUPPORT_H

#include "aeron_spark/as_archive.h"
#include "store/checksum.h"
#include "support.h"

/* Unpacks tests/golden/archive/<name>.tar.gz below `scratch`; `folder` is the archive folder. */
static inline void golden_folder(const char *scratch, const char *name, char *folder)
{
    char command[3 * AS_PATH_MAX];
    snprintf(command, sizeof(command), "tar -xzf '%s/archive/%s.tar.gz' -C '%s'", AS_GOLDEN_DIR, name, scratch);
    CHECK_I64(system(command), 0);
    snprintf(folder, AS_PATH_MAX, "%s/%s", scratch, name);
}

static inline uint8_t *file_load(const char *folder, const char *name, int64_t *length)
{
    char path[2 * AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    CHECK(NULL != file);
    CHECK(0 == fseek(file, 0, SEEK_END));
    *length = ftell(file);
    rewind(file);
    uint8_t *bytes = calloc(1, (size_t)*length + 1);
    CHECK(NULL != bytes && (size_t)*length == fread(bytes, 1, (size_t)*length, file));
    fclose(file);
    return bytes;
}

static inline void file_store(const char *folder, const char *name, const void *bytes, int64_t length)
{
    char path[2 * AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(NULL != file && (size_t)length == fwrite(bytes, 1, (size_t)length, file));
    CHECK(0 == fclose(file));
}

typedef struct message
{
    int64_t begin_position; /* -1: not in the list */
    int64_t end_position;
    int64_t length;
    uint32_t crc32;
    int64_t reserved_value;
} message;

/* messages/rec-<id>.csv; NULL if there is none. Free it. */
static inline message *message_list(const char *folder, int64_t recording_id, int64_t *count)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/messages/rec-%" PRId64 ".csv", folder, recording_id);
    FILE *file = fopen(path, "r");
    if (NULL == file)
    {
        return NULL;
    }
    char line[512];
    CHECK(NULL != fgets(line, sizeof(line), file));
    const bool has_begin = NULL != strstr(line, "begin_position");
    message *list = calloc(4096, sizeof(*list));
    *count = 0;
    while (NULL != fgets(line, sizeof(line), file))
    {
        CHECK(*count < 4096);
        message *next = &list[(*count)++];
        next->begin_position = -1;
        if (has_begin)
        {
            CHECK_I64(sscanf(line, "%*d,%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNx32 ",%" SCNd64, &next->begin_position,
                &next->end_position, &next->length, &next->crc32, &next->reserved_value), 5);
        }
        else
        {
            CHECK_I64(sscanf(line, "%*d,%" SCNd64 ",%" SCNd64 ",%" SCNx32 ",%" SCNd64, &next->end_position, &next->length,
                &next->crc32, &next->reserved_value), 4);
        }
    }
    fclose(file);
    return list;
}

/* All columns, owned. */
static inline as_columns columns_create(int64_t rows, int64_t bytes)
{
    as_columns columns = { .row_capacity = rows, .byte_capacity = bytes, .position = calloc((size_t)rows, 8),
        .next_position = calloc((size_t)rows, 8), .reserved_value = calloc((size_t)rows, 8),
        .session_id = calloc((size_t)rows, 4), .stream_id = calloc((size_t)rows, 4), .term_id = calloc((size_t)rows, 4),
        .term_offset = calloc((size_t)rows, 4), .flags = calloc((size_t)rows, 1), .value_offset = calloc((size_t)rows + 1, 4),
        .value = malloc((size_t)bytes) };
    CHECK(NULL != columns.value_offset && NULL != columns.value);
    return columns;
}

static inline void columns_free(as_columns *columns)
{
    free(columns->position);
    free(columns->next_position);
    free(columns->reserved_value);
    free(columns->session_id);
    free(columns->stream_id);
    free(columns->term_id);
    free(columns->term_offset);
    free(columns->flags);
    free(columns->value_offset);
    free(columns->value);
    free(columns->value_end);
}

static inline int64_t row_length(const as_columns *columns, int64_t row)
{
    const int32_t end = NULL != columns->value_end ? columns->value_end[row] : columns->value_offset[row + 1];
    return end - columns->value_offset[row];
}

static inline uint32_t row_crc32(const as_columns *columns, int64_t row)
{
    return asi_crc32(columns->value + columns->value_offset[row], row_length(columns, row));
}

static inline as_folder *folder_open(const char *path, as_record_checksum checksum)
{
    as_folder_options options;
    as_folder_options_init(&options);
    options.checksum = checksum;
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(path, &options, &folder), AS_OK);
    return folder;
}

#endif
