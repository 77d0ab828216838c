/* See follow.h. */
#include "follow.h"

#include <stdlib.h>

#include "aeron_spark/as_archive.h"
#include "sbe_program.h"

/* Copies the newest id and the ids of recordings that may grow. The columns are those of the last refresh. */
static jlong copy_active(JNIEnv *env, const as_folder_columns *columns, int64_t count, jlongArray ids)
{
    const jsize capacity = (*env)->GetArrayLength(env, ids);
    const jlong newest = 0 == count ? -1 : columns->recording_id[count - 1];
    jlong found = 0;
    (*env)->SetLongArrayRegion(env, ids, 0, 1, &newest);
    for (int64_t at = 0; at < count; at++)
    {
        if (AS_NULL_VALUE == columns->stop_position[at])
        {
            found++;
            if (found < capacity)
            {
                const jlong id = columns->recording_id[at];
                (*env)->SetLongArrayRegion(env, ids, (jsize)found, 1, &id);
            }
        }
    }
    return found;
}

jlong JNICALL native_active(JNIEnv *env, jclass of, jlong handle, jlongArray ids)
{
    (void)of;
    as_folder *folder = (as_folder *)(intptr_t)handle;
    const as_result result = as_folder_refresh(folder);
    if (AS_OK != result)
    {
        return (jlong)result;
    }
    const int64_t count = as_folder_recording_count(folder);
    int64_t *memory = malloc((size_t)(4 * count + 1) * sizeof(int64_t));
    if (NULL == memory)
    {
        return ASJ_NO_MEMORY;
    }
    const as_folder_columns columns = {
        .recording_id = memory,
        .revision = memory + count,
        .start_position = memory + 2 * count,
        .stop_position = memory + 3 * count,
    };
    as_folder_get_columns(folder, &columns);
    const jlong found = copy_active(env, &columns, count, ids);
    free(memory);
    return found;
}

jint JNICALL native_extents(JNIEnv *env, jclass of, jlong handle, jlongArray ids, jlongArray found)
{
    (void)of;
    const jsize count = (*env)->GetArrayLength(env, ids);
    as_recording_extent *extents = malloc((size_t)count * sizeof(*extents) + 1);
    jlong *numbers = malloc((size_t)count * 2 * sizeof(*numbers) + 1);
    jint result = ASJ_NO_MEMORY;
    if (NULL != extents && NULL != numbers)
    {
        /* The ids first, in the place where the start positions are to be. */
        (*env)->GetLongArrayRegion(env, ids, 0, count, numbers);
        result = (jint)as_folder_extents((as_folder *)(intptr_t)handle, (const int64_t *)numbers, count, extents);
    }
    if (AS_OK == result)
    {
        for (jsize at = 0; at < count; at++)
        {
            numbers[at] = extents[at].start_position;
            numbers[count + at] = extents[at].limit_position;
        }
        (*env)->SetLongArrayRegion(env, found, 0, 2 * count, numbers);
    }
    free(extents);
    free(numbers);
    return result;
}

jlong JNICALL native_advance(JNIEnv *env, jclass of, jlong handle, jlong recording_id, jlong from, jlong limit)
{
    (void)env;
    (void)of;
    int64_t to = 0;
    const as_result result = as_folder_advance(
        (as_folder *)(intptr_t)handle, recording_id, from, limit, AS_NULL_VALUE, AS_NULL_VALUE, &to);
    return AS_OK == result ? to : (jlong)result;
}

jint JNICALL native_time_reach(JNIEnv *env, jclass of, jlong handle, jlong recording_id, jlongArray found)
{
    (void)of;
    as_time_reach reach;
    const as_result result = as_folder_time_reach((as_folder *)(intptr_t)handle, recording_id, &reach);
    if (AS_OK == result)
    {
        const jlong numbers[2] = { reach.position, reach.interval_ns };
        (*env)->SetLongArrayRegion(env, found, 0, 2, numbers);
    }
    return (jint)result;
}
