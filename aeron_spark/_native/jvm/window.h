/* Bytes of a segment that Java was given, instead of a folder's file: functions of Native.java, which reader.c registers. */
#ifndef AERON_SPARK_JVM_WINDOW_H
#define AERON_SPARK_JVM_WINDOW_H

#include <jni.h>

#include "aeron_spark/as_archive.h"

typedef struct asj_window
{
    as_recording recording; /* cut to the segment */
    as_segment_bytes bytes;
    uint8_t *memory;
    char *folder;
} asj_window;

/* Makes room for the bytes. `facts`: length, position of the first byte, checksum; then of the recording: id, start position, stop
 * position, initial term id, length of a segment, of a term, MTU, session id, stream id. `folder` is the bytes' name in errors. */
jlong JNICALL native_open_window(JNIEnv *env, jclass of, jbyteArray folder, jlongArray facts);

/* Copies bytes to an offset; what does not fit is left out. Returns how many were copied. */
jint JNICALL native_fill_window(JNIEnv *env, jclass of, jlong window, jlong offset, jbyteArray bytes);

/* After the rows that were opened over it. */
void JNICALL native_close_window(JNIEnv *env, jclass of, jlong window);

#endif
