/* How the JVM follows growing recordings: the functions of Native.java that Real-Time Mode needs; reader.c registers them. */
#ifndef AERON_SPARK_JVM_FOLLOW_H
#define AERON_SPARK_JVM_FOLLOW_H

#include <jni.h>

/* Reads the catalog again. Fills `ids` with the newest recording (-1: none), and those without a stop position as far as they fit.
 * Returns how many these are. */
jlong JNICALL native_active(JNIEnv *env, jclass of, jlong folder, jlongArray ids);

/* Fills `found` with start positions, then limit positions, of the recordings. */
jint JNICALL native_extents(JNIEnv *env, jclass of, jlong folder, jlongArray ids, jlongArray found);

/* Returns the last message boundary in [from, limit]. */
jlong JNICALL native_advance(JNIEnv *env, jclass of, jlong folder, jlong recording_id, jlong from, jlong limit);

/* Fills `found` with the position up to which the messages of a recording have times of the index, and the interval of entries to
 * come in ns, 0 where none comes. */
jint JNICALL native_time_reach(JNIEnv *env, jclass of, jlong folder, jlong recording_id, jlongArray found);

#endif
