#include "window.h"

#include <stdlib.h>

#include "sbe_program.h"

#define FACTS 12

static void close_window(asj_window *window)
{
    free(window->memory);
    free(window->folder);
    free(window);
}

jlong JNICALL native_open_window(JNIEnv *env, jclass of, jbyteArray folder, jlongArray facts)
{
    (void)of;
    jlong found[FACTS] = { 0 };
    (*env)->GetLongArrayRegion(env, facts, 0, FACTS, found);
    const jsize name_length = (*env)->GetArrayLength(env, folder);
    asj_window *window = calloc(1, sizeof(*window));
    if (NULL == window)
    {
        return ASJ_NO_MEMORY;
    }
    window->memory = found[0] > 0 ? malloc((size_t)found[0]) : NULL;
    window->folder = malloc((size_t)name_length + 1);
    if (NULL == window->memory || NULL == window->folder)
    {
        close_window(window);
        return ASJ_NO_MEMORY;
    }
    (*env)->GetByteArrayRegion(env, folder, 0, name_length, (jbyte *)window->folder);
    window->folder[name_length] = '\0';
    window->bytes = (as_segment_bytes){ .folder = window->folder, .bytes = window->memory, .length = found[0],
        .position = found[1], .checksum = (as_record_checksum)found[2] };
    window->recording = (as_recording){ .recording_id = found[3], .start_position = found[4], .stop_position = found[5],
        .initial_term_id = (int32_t)found[6], .segment_file_length = (int32_t)found[7], .term_buffer_length = (int32_t)found[8],
        .mtu_length = (int32_t)found[9], .session_id = (int32_t)found[10], .stream_id = (int32_t)found[11] };
    return (jlong)(intptr_t)window;
}

jint JNICALL native_fill_window(JNIEnv *env, jclass of, jlong handle, jlong offset, jbyteArray bytes)
{
    (void)of;
    const asj_window *window = (const asj_window *)(intptr_t)handle;
    const int64_t room = offset >= 0 && offset < window->bytes.length ? window->bytes.length - offset : 0;
    const jsize given = (*env)->GetArrayLength(env, bytes);
    const jsize count = given < room ? given : (jsize)room;
    (*env)->GetByteArrayRegion(env, bytes, 0, count, (jbyte *)window->memory + offset);
    return count;
}

void JNICALL native_close_window(JNIEnv *env, jclass of, jlong handle)
{
    (void)env;
    (void)of;
    close_window((asj_window *)(intptr_t)handle);
}
