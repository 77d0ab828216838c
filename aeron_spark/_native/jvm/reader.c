/* What aeronspark/Native.java declares: the folder and its segment reader for the JVM engine of the Spark source.
 *
 * A `rows` owns the memory of its columns, which Java reads by address until the next call, but for endRows. Results below zero are
 * an as_result; its text is this thread's as_error_text(). Java passes handles that it got from here, one thread at a time.
 * Everything else that it passes has been checked by the planner or is checked by as_folder and as_segment_reader. */
#include <jni.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aeron_spark/as_archive.h"
#include "follow.h"
#include "sbe_program.h"

#define NS_PER_US 1000

/* Order and widths: as in Native.java. */
typedef enum column_kind
{
    POSITION,
    NEXT_POSITION,
    RESERVED_VALUE,
    SESSION_ID,
    STREAM_ID,
    TERM_ID,
    TERM_OFFSET,
    FLAGS,
    VALUE_OFFSET,
    VALUE,
    TIME_NS,
    TIME_US,
    TIME_IS_NULL,
    VALUE_END,
    COLUMNS
} column_kind;

static const int64_t WIDTHS[COLUMNS] = { 8, 8, 8, 4, 4, 4, 4, 1, 4, 1, 8, 8, 1, 4 };

typedef struct rows
{
    as_folder *folder; /* Java closes it after this */
    as_segment_reader *reader;
    int64_t recording_id;
    int64_t reserved_unit_ns; /* 0: times come from the time index */
    bool has_times;
    bool is_text;             /* values must be UTF-8 */
    int64_t value_capacity;   /* of the memory of values */
    as_columns columns;       /* byte_capacity: of a batch, no more than that */
    void *memory[COLUMNS]; /* NULL for a column that is not asked for */
} rows;

/* Text of Java's bytes, which hold no NUL; NULL for null or without memory. */
static char *text_of(JNIEnv *env, jbyteArray bytes)
{
    if (NULL == bytes)
    {
        return NULL;
    }
    const jsize length = (*env)->GetArrayLength(env, bytes);
    char *text = malloc((size_t)length + 1);
    if (NULL != text)
    {
        (*env)->GetByteArrayRegion(env, bytes, 0, length, (jbyte *)text);
        text[length] = '\0';
    }
    return text;
}

static jbyteArray bytes_of(JNIEnv *env, const char *text)
{
    const jsize length = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, length);
    if (NULL != bytes)
    {
        (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)text);
    }
    return bytes;
}

static jbyteArray JNICALL native_error_text(JNIEnv *env, jclass of)
{
    (void)of;
    return bytes_of(env, as_error_text());
}

static jboolean JNICALL native_exists(JNIEnv *env, jclass of, jbyteArray path)
{
    (void)of;
    char *text = text_of(env, path);
    const bool is_there = NULL == text || 0 == access(text, F_OK); /* without memory it is not missing */
    free(text);
    return is_there ? JNI_TRUE : JNI_FALSE;
}

static jlong JNICALL native_open_folder(
    JNIEnv *env, jclass of, jbyteArray path, jbyteArray aeron_dir, jint checksum, jboolean reads_counters)
{
    (void)of;
    char *path_text = text_of(env, path);
    char *aeron_dir_text = text_of(env, aeron_dir);
    if (NULL == path_text || (NULL != aeron_dir && NULL == aeron_dir_text))
    {
        free(path_text);
        free(aeron_dir_text);
        return ASJ_NO_MEMORY;
    }
    as_folder_options options;
    as_folder_options_init(&options);
    options.aeron_dir = aeron_dir_text;
    options.checksum = (as_record_checksum)checksum;
    /* A mapped file that another process truncates would end the JVM. Of what is planned, the planner has seen the counters. */
    options.without_counters = 0 == reads_counters;
    as_folder *folder = NULL;
    const as_result result = as_folder_open(path_text, &options, &folder);
    free(path_text);
    free(aeron_dir_text);
    return AS_OK == result ? (jlong)(intptr_t)folder : (jlong)result;
}

static void JNICALL native_close_folder(JNIEnv *env, jclass of, jlong folder)
{
    (void)env;
    (void)of;
    as_folder_close((as_folder *)(intptr_t)folder);
}

/* Start and limit position. */
static jint JNICALL native_extent(
    JNIEnv *env, jclass of, jlong folder, jlong recording_id, jlongArray found)
{
    (void)of;
    as_recording_extent extent;
    const as_result result = as_folder_extent((as_folder *)(intptr_t)folder, recording_id, &extent);
    if (AS_OK == result)
    {
        const jlong numbers[] = { extent.start_position, extent.limit_position };
        (*env)->SetLongArrayRegion(env, found, 0, 2, numbers);
    }
    return (jint)result;
}

/* Start position, term length, segment length and stream id; original channel and source identity. */
static jint JNICALL native_recording(
    JNIEnv *env, jclass of, jlong folder, jlong recording_id, jlongArray numbers, jobjectArray texts)
{
    (void)of;
    as_recording recording;
    const as_result result = as_folder_recording((as_folder *)(intptr_t)folder, recording_id, &recording);
    if (AS_OK == result)
    {
        const jlong found[] = {
            recording.start_position, recording.term_buffer_length, recording.segment_file_length, recording.stream_id };
        jbyteArray channel = bytes_of(env, recording.original_channel);
        jbyteArray source = NULL == channel ? NULL : bytes_of(env, recording.source_identity);
        if (NULL == source)
        {
            return ASJ_NO_MEMORY; /* Java throws its own error, which allows no further call */
        }
        (*env)->SetLongArrayRegion(env, numbers, 0, 4, found);
        (*env)->SetObjectArrayElement(env, texts, 0, channel);
        (*env)->SetObjectArrayElement(env, texts, 1, source);
    }
    return (jint)result;
}

static void close_rows(rows *made)
{
    as_segment_reader_close(made->reader);
    for (int at = 0; at < COLUMNS; at++)
    {
        free(made->memory[at]);
    }
    free(made);
}

static bool allocate(rows *made, uint32_t mask)
{
    as_columns *columns = &made->columns;
    for (int at = 0; at < COLUMNS; at++)
    {
        if (0 != (mask & 1U << at))
        {
            const int64_t count = VALUE == at ? made->value_capacity : columns->row_capacity + 1;
            made->memory[at] = malloc((size_t)(count * WIDTHS[at]));
            if (NULL == made->memory[at])
            {
                return false;
            }
        }
    }
    columns->position = made->memory[POSITION];
    columns->next_position = made->memory[NEXT_POSITION];
    columns->reserved_value = made->memory[RESERVED_VALUE];
    columns->session_id = made->memory[SESSION_ID];
    columns->stream_id = made->memory[STREAM_ID];
    columns->term_id = made->memory[TERM_ID];
    columns->term_offset = made->memory[TERM_OFFSET];
    columns->flags = made->memory[FLAGS];
    columns->value_offset = made->memory[VALUE_OFFSET];
    columns->value = made->memory[VALUE];
    columns->value_end = made->memory[VALUE_END];
    return true;
}

static jlong JNICALL native_open_rows(JNIEnv *env, jclass of, jlong folder, jlong recording_id, jlong start,
    jlong end, jlong limit, jint mask, jint row_capacity, jint byte_capacity, jint value_capacity, jlong reserved_unit_ns,
    jboolean is_text)
{
    (void)env;
    (void)of;
    rows *made = calloc(1, sizeof(*made));
    if (NULL == made)
    {
        return ASJ_NO_MEMORY;
    }
    made->folder = (as_folder *)(intptr_t)folder;
    made->recording_id = recording_id;
    made->reserved_unit_ns = reserved_unit_ns;
    made->is_text = 0 != is_text && 0 != (mask & (1 << VALUE));
    made->has_times = 0 != (mask & (1 << TIME_IS_NULL));
    const uint32_t source = made->has_times ? 1U << (0 == reserved_unit_ns ? NEXT_POSITION : RESERVED_VALUE) : 0;
    const bool has_value = 0 != (mask & (1 << VALUE));
    made->value_capacity = has_value ? value_capacity : 0;
    made->columns = (as_columns){ .row_capacity = row_capacity, .byte_capacity = has_value ? byte_capacity : 0 };
    const jlong result = !allocate(made, (uint32_t)mask | source) ? ASJ_NO_MEMORY :
        (jlong)as_segment_reader_open(made->folder, recording_id, start, end, limit, &made->reader);
    if (AS_OK != result)
    {
        close_rows(made);
        return result;
    }
    return (jlong)(intptr_t)made;
}

/* The columns stay, and nothing but their memory. */
static void JNICALL native_end_rows(JNIEnv *env, jclass of, jlong handle)
{
    (void)env;
    (void)of;
    rows *made = (rows *)(intptr_t)handle;
    as_segment_reader_close(made->reader);
    made->reader = NULL;
}

static void JNICALL native_close_rows(JNIEnv *env, jclass of, jlong handle)
{
    (void)env;
    (void)of;
    close_rows((rows *)(intptr_t)handle);
}

static jlong JNICALL native_address(JNIEnv *env, jclass of, jlong handle, jint column)
{
    (void)env;
    (void)of;
    const rows *made = (const rows *)(intptr_t)handle;
    return (jlong)(intptr_t)made->memory[column];
}

/* Where the next message begins. */
static jlong JNICALL native_position(JNIEnv *env, jclass of, jlong handle)
{
    (void)env;
    (void)of;
    const rows *made = (const rows *)(intptr_t)handle;
    return as_segment_reader_position(made->reader);
}

static jbyteArray JNICALL native_doubt(JNIEnv *env, jclass of, jlong handle)
{
    (void)of;
    const rows *made = (const rows *)(intptr_t)handle;
    as_doubt doubt;
    return as_segment_reader_doubt(made->reader, &doubt) ? bytes_of(env, doubt.text) : NULL;
}

/* A reserved value of 0, or too far from 1970, is no time. */
static void times_of_reserved(const rows *made, int64_t count)
{
    const int64_t most = INT64_MAX / made->reserved_unit_ns;
    int64_t *times = made->memory[TIME_NS];
    uint8_t *is_null = made->memory[TIME_IS_NULL];
    for (int64_t row = 0; row < count; row++)
    {
        const int64_t stamp = made->columns.reserved_value[row];
        is_null[row] = 0 == stamp || stamp > most || stamp < -most;
        times[row] = 0 != is_null[row] ? 0 : stamp * made->reserved_unit_ns;
    }
}

/* The time of a message is that of its last byte. */
static as_result times_of_index(const rows *made, int64_t count)
{
    int64_t *times = made->memory[TIME_NS];
    uint8_t *is_null = made->memory[TIME_IS_NULL];
    int64_t *last_bytes = made->memory[TIME_US]; /* not yet in use */
    for (int64_t row = 0; row < count; row++)
    {
        last_bytes[row] = made->columns.next_position[row] - 1;
    }
    const as_result result = as_folder_times_at(made->folder, made->recording_id, last_bytes, count, times, is_null);
    for (int64_t row = 0; row < count; row++)
    {
        is_null[row] = AS_TIME_FROM_INDEX != is_null[row];
    }
    return result;
}

static as_result make_times(const rows *made, int64_t count)
{
    if (0 != made->reserved_unit_ns)
    {
        times_of_reserved(made, count);
    }
    else
    {
        const as_result result = times_of_index(made, count);
        if (AS_OK != result)
        {
            return result;
        }
    }
    const int64_t *times = made->memory[TIME_NS];
    int64_t *microseconds = made->memory[TIME_US];
    for (int64_t row = 0; row < count; row++)
    {
        /* Rounded down, also before 1970. */
        microseconds[row] = times[row] / NS_PER_US - (times[row] % NS_PER_US < 0 ? 1 : 0);
    }
    return AS_OK;
}

/* A message that is longer than a batch gets all of the memory; then batches stay that large, as others like it may follow. */
static as_result next_batch(rows *made)
{
    const as_result result = as_segment_reader_next(made->reader, &made->columns);
    if (AS_E_USAGE != result || made->columns.byte_capacity >= made->value_capacity)
    {
        return result;
    }
    made->columns.byte_capacity = made->value_capacity;
    return as_segment_reader_next(made->reader, &made->columns);
}

/* Fills the columns; returns the number of rows, 0 at the end of the range. */
static jint JNICALL native_next(JNIEnv *env, jclass of, jlong handle)
{
    (void)env;
    (void)of;
    rows *made = (rows *)(intptr_t)handle;
    as_result result = next_batch(made);
    if (AS_OK == result && made->has_times && made->columns.row_count > 0)
    {
        result = make_times(made, made->columns.row_count);
    }
    if (AS_OK == result && made->is_text && made->columns.row_count > 0 &&
        !as_sbe_are_utf8(made->columns.value, made->columns.value_offset, made->columns.row_count))
    {
        return ASJ_NOT_PLAIN;
    }
    return AS_OK == result ? (jint)made->columns.row_count : (jint)result;
}

static jlong JNICALL native_open_sbe(JNIEnv *env, jclass of, jbyteArray program, jbyteArray wanted)
{
    (void)of;
    jbyte *bytes = (*env)->GetByteArrayElements(env, program, NULL);
    jbyte *choice = (*env)->GetByteArrayElements(env, wanted, NULL);
    asj_sbe *opened = NULL;
    const int64_t result = NULL == bytes || NULL == choice ? ASJ_NO_MEMORY :
        asj_sbe_open((const uint8_t *)bytes, (*env)->GetArrayLength(env, program), (const uint8_t *)choice,
            (*env)->GetArrayLength(env, wanted), &opened);
    if (NULL != bytes)
    {
        (*env)->ReleaseByteArrayElements(env, program, bytes, JNI_ABORT);
    }
    if (NULL != choice)
    {
        (*env)->ReleaseByteArrayElements(env, wanted, choice, JNI_ABORT);
    }
    return AS_OK == result ? (jlong)(intptr_t)opened : result;
}

static void JNICALL native_close_sbe(JNIEnv *env, jclass of, jlong sbe)
{
    (void)env;
    (void)of;
    asj_sbe_close((asj_sbe *)(intptr_t)sbe);
}

/* Decodes the values of the last `next`; returns the number of rows. */
static jint JNICALL native_decode(JNIEnv *env, jclass of, jlong sbe, jlong handle)
{
    (void)env;
    (void)of;
    const as_columns *columns = &((const rows *)(intptr_t)handle)->columns;
    return (jint)asj_sbe_decode((asj_sbe *)(intptr_t)sbe, columns->value, columns->value_offset, columns->row_count);
}

static jlong JNICALL native_sbe_array(JNIEnv *env, jclass of, jlong sbe)
{
    (void)env;
    (void)of;
    return (jlong)(intptr_t)asj_sbe_array((const asj_sbe *)(intptr_t)sbe);
}

static jlong JNICALL native_sbe_payloads(JNIEnv *env, jclass of, jlong sbe)
{
    (void)env;
    (void)of;
    return (jlong)(intptr_t)asj_sbe_payloads((const asj_sbe *)(intptr_t)sbe);
}

/* A name or signature that Native.java does not have fails the loading of the library. */
JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    (void)reserved;
    static const JNINativeMethod METHODS[] = {
        { "errorText", "()[B", (void *)native_error_text },
        { "exists", "([B)Z", (void *)native_exists },
        { "openFolder", "([B[BIZ)J", (void *)native_open_folder },
        { "closeFolder", "(J)V", (void *)native_close_folder },
        { "extent", "(JJ[J)I", (void *)native_extent },
        { "recording", "(JJ[J[[B)I", (void *)native_recording },
        { "openRows", "(JJJJJIIIIJZ)J", (void *)native_open_rows },
        { "endRows", "(J)V", (void *)native_end_rows },
        { "closeRows", "(J)V", (void *)native_close_rows },
        { "address", "(JI)J", (void *)native_address },
        { "position", "(J)J", (void *)native_position },
        { "doubt", "(J)[B", (void *)native_doubt },
        { "next", "(J)I", (void *)native_next },
        { "openSbe", "([B[B)J", (void *)native_open_sbe },
        { "closeSbe", "(J)V", (void *)native_close_sbe },
        { "decode", "(JJ)I", (void *)native_decode },
        { "sbeArray", "(J)J", (void *)native_sbe_array },
        { "sbePayloads", "(J)J", (void *)native_sbe_payloads },
        { "active", "(J[J)J", (void *)native_active },
        { "extents", "(J[J[J)I", (void *)native_extents },
        { "advance", "(JJJJ)J", (void *)native_advance },
        { "timeReach", "(JJ[J)I", (void *)native_time_reach },
    };
    JNIEnv *env = NULL;
    if (JNI_OK != (*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_10))
    {
        return JNI_ERR;
    }
    jclass of = (*env)->FindClass(env, "aeronspark/Native");
    const jint count = (jint)(sizeof(METHODS) / sizeof(METHODS[0]));
    return NULL != of && JNI_OK == (*env)->RegisterNatives(env, of, METHODS, count) ? JNI_VERSION_10 : JNI_ERR;
}
