/* Interface of a plug-in that authenticates and authorises the clients of an archive.
 *
 * A plug-in is a shared object that exports one object of type `const as_archive_auth`. The archive opens it when
 * `aeron.spark.archive.auth.library` names the file; `aeron.spark.archive.auth.symbol` names the object (default
 * "as_archive_auth_plugin"), and `aeron.spark.archive.auth.argument` is passed to its `open`:
 *
 *      static as_auth_decision on_connect(void *state, int64_t session_id, const uint8_t *credentials, int64_t length,
 *          as_auth_bytes *out) { ... }
 *      const as_archive_auth as_archive_auth_plugin = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = on_connect };
 *
 * Build it with `cc -shared -fPIC -I<aeron_spark>/include`; no library needs to be linked. It runs inside the archive with the
 * archive's rights, so the file must not be writable by others.
 *
 * Each session is accepted or rejected once. on_connect returns ACCEPT, REJECT, CHALLENGE or WAIT. CHALLENGE sends `out` to the
 * client; the client's answer goes to on_challenge_response, which decides again. WAIT calls on_wait in each later cycle. A
 * session that is not accepted within aeron.archive.connect.timeout ends.
 *
 * Thread rule: all calls come from the archive's conductor, one at a time. They must not block: other sessions
 * wait in every mode, and recording and replaying have threads of their own in DEDICATED mode only. Spec: 07 §7. */
#ifndef AERON_SPARK_AS_ARCHIVE_AUTH_H
#define AERON_SPARK_AS_ARCHIVE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#define AS_ARCHIVE_AUTH_VERSION 1
#define AS_ARCHIVE_AUTH_BYTES_MAX 512

/* Action ids are the template ids of the control protocol (StartRecordingRequest2 is 63), plus this one, which stops a
 * replay that another principal started. */
#define AS_AUTH_ACTION_STOP_ANY_REPLAY 1001

typedef enum as_auth_decision_e
{
    AS_AUTH_WAIT = 0,
    AS_AUTH_ACCEPT = 1,
    AS_AUTH_CHALLENGE = 2,
    AS_AUTH_REJECT = 3
} as_auth_decision;

/* Output of a decision. ACCEPT: the principal, which is_authorised receives. CHALLENGE: the challenge. */
typedef struct as_auth_bytes
{
    int64_t length;
    uint8_t bytes[AS_ARCHIVE_AUTH_BYTES_MAX];
} as_auth_bytes;

typedef struct as_archive_auth
{
    int32_t version; /* AS_ARCHIVE_AUTH_VERSION */
    /* Called once, before any other function. NULL: the plug-in has no state. A non-zero result stops the archive's start; the
     * archive then reports `error`, a terminated text that must not hold secrets. `argument` is "" if none is set. */
    int (*open)(void **state, const char *argument, char *error, int64_t error_capacity);
    /* Frees the state. NULL: nothing to free. */
    void (*close)(void *state);
    /* Required. The credentials are those of the connect request and are valid during the call. */
    as_auth_decision (*on_connect)(
        void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out);
    /* NULL: the plug-in never returns CHALLENGE. */
    as_auth_decision (*on_challenge_response)(
        void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out);
    /* NULL: the plug-in never returns WAIT. */
    as_auth_decision (*on_wait)(void *state, int64_t session_id, as_auth_bytes *out);
    /* NULL: an accepted client may do everything. Stock clients send ArchiveIdRequest (68) and KeepAliveRequest (61) when they
     * connect; a client that is not allowed these can't connect with a stock client. */
    bool (*is_authorised)(void *state, const uint8_t *principal, int64_t length, int32_t action_id);
    /* Called when the session ends, for any reason. NULL: not called. */
    void (*on_closed)(void *state, int64_t session_id);
} as_archive_auth;

#endif
