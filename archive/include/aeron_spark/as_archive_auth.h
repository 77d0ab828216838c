/* Authentication and authorisation of an archive by code of your own: a plug-in.
 *
 * A plug-in is a shared object that exports one object of type `const as_archive_auth`. The archive opens it when
 * `aeron.spark.archive.auth.library` names the file; `aeron.spark.archive.auth.symbol` names the object (default
 * "as_archive_auth_plugin"), and `aeron.spark.archive.auth.argument` is passed to its `open`:
 *
 *      static as_auth_decision on_connect(void *state, int64_t session_id, const uint8_t *credentials, int64_t length,
 *          as_auth_bytes *out) { ... }
 *      const as_archive_auth as_archive_auth_plugin = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = on_connect };
 *
 * Built with `cc -shared -fPIC -I<aeron_spark>/include`; nothing needs to be linked. It runs inside the archive and with its
 * rights, so the file must not be writable by others.
 *
 * A session is decided once: on_connect says ACCEPT, REJECT, CHALLENGE (the client is sent `out`, and its answer goes to
 * on_challenge_response, which decides again) or WAIT (on_wait is asked in each later cycle). A session that is not accepted
 * within aeron.archive.connect.timeout ends.
 *
 * Thread rule: all calls come from the archive's conductor, one at a time. They must not block: recording and replaying have
 * threads of their own in DEDICATED mode only, and other sessions wait in every mode. Spec: 07 §7. */
#ifndef AERON_SPARK_AS_ARCHIVE_AUTH_H
#define AERON_SPARK_AS_ARCHIVE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#define AS_ARCHIVE_AUTH_VERSION 1
#define AS_ARCHIVE_AUTH_BYTES_MAX 512

/* Action ids are the template ids of the control protocol (StartRecordingRequest2 is 63), and this one: to stop a replay that
 * another principal started. */
#define AS_AUTH_ACTION_STOP_ANY_REPLAY 1001

typedef enum as_auth_decision_e
{
    AS_AUTH_WAIT = 0,
    AS_AUTH_ACCEPT = 1,
    AS_AUTH_CHALLENGE = 2,
    AS_AUTH_REJECT = 3
} as_auth_decision;

/* What a decision carries: ACCEPT the principal, which authorisation is asked with; CHALLENGE the challenge. */
typedef struct as_auth_bytes
{
    int64_t length;
    uint8_t bytes[AS_ARCHIVE_AUTH_BYTES_MAX];
} as_auth_bytes;

typedef struct as_archive_auth
{
    int32_t version; /* AS_ARCHIVE_AUTH_VERSION */
    /* Once, before anything else; NULL: there is no state. Non-zero: the archive does not start, and says `error` (a terminated
     * text that must not hold secrets). `argument` is "" where none is set. */
    int (*open)(void **state, const char *argument, char *error, int64_t error_capacity);
    /* NULL: nothing to free. */
    void (*close)(void *state);
    /* Must be there. The credentials are those of the connect request, valid during the call. */
    as_auth_decision (*on_connect)(
        void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out);
    /* NULL: nobody is ever challenged. */
    as_auth_decision (*on_challenge_response)(
        void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out);
    /* NULL: no decision ever waits. */
    as_auth_decision (*on_wait)(void *state, int64_t session_id, as_auth_bytes *out);
    /* NULL: who is accepted may do everything. ArchiveIdRequest (68) and KeepAliveRequest (61) are part of connecting for stock
     * clients: who is not allowed these can't connect with them. */
    bool (*is_authorised)(void *state, const uint8_t *principal, int64_t length, int32_t action_id);
    /* The session is over, whatever became of it. NULL: no matter. */
    void (*on_closed)(void *state, int64_t session_id);
} as_archive_auth;

#endif
