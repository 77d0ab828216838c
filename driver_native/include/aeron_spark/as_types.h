/* Result codes, identifiers and limits shared by every public header of aeron_spark. This header declares no function of a
 * subsystem. It declares the error accessors, because the documentation of every other header refers to them.
 *
 * Thread rule: any thread may use everything here. Error text and code are per thread. */
#ifndef AERON_SPARK_AS_TYPES_H
#define AERON_SPARK_AS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On every function that can fail. Callers that can do without the result write `(void)!call()`. */
#if defined(__GNUC__)
#define AS_MUST_USE __attribute__((warn_unused_result))
#else
#define AS_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
/* Outcome of a fallible call: done (AS_OK), try again later (AS_AGAIN, not an error), or failed (negative; the class shows
 * what the caller can do). A failed call leaves its outputs untouched. as_error_text() names the object, the reason and the
 * remedy. as_error_code() returns the peer's code (Spec: 03 §4, 07 §2) or the errno, 0 if there is neither. */
typedef enum as_result_e
{
    AS_OK = 0,
    AS_AGAIN = 1,
    AS_E_USAGE = -1,    /* wrong arguments or wrong order of calls: fix the call */
    AS_E_TIMEOUT = -2,  /* no answer in time: retry, or check the peer */
    AS_E_CLOSED = -3,   /* the object is closed: reopen it */
    AS_E_PEER = -4,     /* the driver or archive returned an error: see as_error_code() */
    AS_E_STORAGE = -5,  /* file system or shared memory failed: errno in as_error_code() */
    AS_E_DATA = -6,     /* bytes are missing, foreign or corrupt: data loss unless handled */
    AS_E_INTERNAL = -7  /* out of memory, or a bug in this library */
} as_result;

/* Text of this thread's last failure. Never NULL; valid until the thread's next failing call. */
const char *as_error_text(void);
/* Peer code or errno of this thread's last failure, 0 if it has none. */
int32_t as_error_code(void);
/* "<major>.<minor>.<patch>" of aeron_spark, and the abbreviated commit of its build ("unknown" outside a checkout). */
const char *as_version_text(void);
const char *as_commit_text(void);

/* Negative results of offer and claim. The numbers are Aeron's (Spec: 02 §5). */
enum
{
    AS_NOT_CONNECTED = -1,
    AS_BACK_PRESSURED = -2,
    AS_ADMIN_ACTION = -3,
    AS_PUBLICATION_CLOSED = -4,
    AS_MAX_POSITION_EXCEEDED = -5,
    AS_PUBLICATION_ERROR = -6
};

/* The null id, position or timestamp. */
enum
{
    AS_NULL_VALUE = -1
};
/* CFFI-END */
#pragma GCC visibility pop

/* Called when a driver or an archive logs a distinct error for the first time, on the agent's thread that logs it; with a full
 * log, for one error a second, which may be a repeated one. The handler must not block. `text` is borrowed for the call. */
typedef void (*as_on_logged_error)(void *context, int32_t code, const char *text);

#define AS_FRAME_ALIGNMENT 32
#define AS_FRAME_HEADER_LENGTH 32
#define AS_TERM_MIN_LENGTH (64 * 1024)
#define AS_TERM_MAX_LENGTH (1024 * 1024 * 1024)
#define AS_MAX_UDP_PAYLOAD_LENGTH 65504
#define AS_MESSAGE_MAX_LENGTH (16 * 1024 * 1024)
#define AS_CHANNEL_MAX_LENGTH 4095
#define AS_PATH_MAX 4096

#ifdef __cplusplus
}
#endif

#endif
