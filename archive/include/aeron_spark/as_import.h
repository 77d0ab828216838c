/* Import: recordings made of bytes that something else has captured, in the folder of an archive that does not run.
 * Spec: 06 §7.
 *
 * A recording gets the captured frames at their positions, or messages as a publication would frame them. Its bytes have no gap:
 * who has a gap ends the recording and begins another behind it. A program that dies leaves what an archive leaves that dies.
 * Thread rule: an import and its recordings belong to one thread at a time. */
#ifndef AERON_SPARK_AS_IMPORT_H
#define AERON_SPARK_AS_IMPORT_H

#include "aeron_spark/as_archive_client.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
typedef enum as_datagram_kind_e
{
    AS_DATAGRAM_FOREIGN = 0, /* not of Aeron, or not as the protocol has it */
    AS_DATAGRAM_FRAMES,      /* frames of a term, back to back */
    AS_DATAGRAM_SETUP,
    AS_DATAGRAM_CONTROL      /* heartbeats, NAKs, status messages and the like */
} as_datagram_kind;

typedef struct as_datagram
{
    int32_t kind;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;     /* of the first frame */
    int32_t term_offset;
    int32_t extent;      /* bytes of term; more than the datagram has if it ends with padding */
    int32_t longest;     /* length of its longest data frame, which a stream's MTU bounds */
    int32_t initial_term_id; /* this and the next two: of a setup */
    int32_t term_length;
    int32_t mtu_length;
} as_datagram;

/* Tells what UDP payloads are to Aeron; payload i has length[i] bytes from bytes + start[i] on. */
void as_datagrams_read(const uint8_t *bytes, const int64_t *start, const int64_t *length, int64_t count, as_datagram *datagrams);

typedef struct as_import as_import;
typedef struct as_import_recording as_import_recording;

/* Stretches of bytes, each with its time: stretch i has length[i] bytes from bytes + start[i] on. Times do not decrease. */
typedef struct as_import_stretches
{
    const uint8_t *bytes;
    const int64_t *start;
    const int64_t *length;
    const int64_t *time_ns;
    int64_t count;
} as_import_stretches;

/* Opens a folder, or makes its catalog. AS_E_USAGE: an archive, or a tool, owns it. */
as_result as_import_open(const char *archive_dir, as_import **import) AS_MUST_USE;
void as_import_close(as_import *import);
/* Begins a recording with start position, stream and lengths of `recording`; *id receives its id. AS_E_USAGE: impossible values. */
as_result as_import_begin(
    as_import *import, const as_recording *recording, int64_t *id, as_import_recording **made) AS_MUST_USE;
/* Appends datagrams of frames. AS_E_DATA: frames that are not whole, or not those of the recording's next position. */
as_result as_import_frames(as_import_recording *recording, const as_import_stretches *stretches) AS_MUST_USE;
/* Appends messages, each with its time as reserved value. AS_E_USAGE: longer than as_import_max_message_length. */
as_result as_import_messages(as_import_recording *recording, const as_import_stretches *stretches) AS_MUST_USE;
int64_t as_import_max_message_length(const as_import_recording *recording);
/* Stops the recording; *position receives where. Only closing it is left to do then. */
as_result as_import_end(as_import_recording *recording, int64_t stop_timestamp_ms, int64_t *position) AS_MUST_USE;
/* Harmless on NULL. A recording that was not ended is as after a crash. */
void as_import_recording_close(as_import_recording *recording);
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
