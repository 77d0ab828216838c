/* One replication: copies a recording of another archive (the source) into a recording of this archive (the destination), by
 * recording a replay of the source. Spec: 08 §10.
 *
 *   CONNECT > DESCRIPTOR > [SOURCE_POSITION] > EXTEND > [DESTINATION] > [TOKEN > REQUESTS] > REPLAY > AWAIT_IMAGE
 *      > REPLICATE ........................ > CLOSING > freed        copied, ended, or stopped
 *      > CATCHUP <> LIVE_JOIN ............. > CLOSING > freed        merged: the recording continues from the live stream
 *   any state --abort | error | timeout--> CLOSING
 *
 * The conductor steps the replication, and no step blocks: the session with the source is a client step machine, and
 * destinations and publications are requested from the driver and polled later. recordings.c extends the destination as for a
 * request. The destination therefore stops with a valid position however the replication ends, and can be replicated further.
 * The recorder writes it like any other recording.
 *
 * Signals and errors are sent to the requesting session, if it still exists, with the replication's id. Thread rule: conductor
 * only. */
#ifndef ASI_SERVER_REPLICATION_H
#define ASI_SERVER_REPLICATION_H

#include "client/connect.h"
#include "server/archive.h"
#include "server/recording.h"

typedef enum asi_replication_state
{
    ASI_REPLICATION_CONNECT,
    ASI_REPLICATION_DESCRIPTOR,
    ASI_REPLICATION_SOURCE_POSITION, /* live merge: the source must be recording */
    ASI_REPLICATION_EXTEND,
    ASI_REPLICATION_DESTINATION,     /* manual subscription: adds its replay destination */
    ASI_REPLICATION_TOKEN,           /* response channel: requests a replay token, */
    ASI_REPLICATION_REQUESTS,        /* and adds the publication that presents it */
    ASI_REPLICATION_REPLAY,
    ASI_REPLICATION_AWAIT_IMAGE,
    ASI_REPLICATION_REPLICATE,
    ASI_REPLICATION_CATCHUP,
    ASI_REPLICATION_LIVE_JOIN,
    ASI_REPLICATION_CLOSING          /* waits for the driver's outstanding answers */
} asi_replication_state;

/* The checked parameters of the request. Texts are owned and never NULL. */
typedef struct asi_replication_params
{
    int64_t source_recording_id;
    int64_t stop_position;          /* AS_NULL_VALUE: no limit */
    int64_t channel_tag_id;
    int64_t subscription_tag_id;
    int32_t source_stream_id;       /* stream id of the source's control requests */
    int32_t file_io_max_length;     /* AS_NULL_VALUE: the source's */
    int32_t session_id;             /* of the replay; AS_NULL_VALUE: the source recording's */
    bool is_live;
    bool is_tagged;
    bool is_response;               /* the replication channel's control mode is "response" */
    char *source_channel;
    char *response_channel;         /* response channel of the session with the source */
    char *replication_channel;
    char *live_destination;
    uint8_t *credentials;           /* wiped when freed */
    int64_t credentials_length;
} asi_replication_params;

typedef struct asi_replication
{
    struct asi_replication *next;
    as_archive *archive;
    int64_t id;
    int64_t control_session_id;     /* requesting session; may be gone */
    int64_t recording_id;           /* the destination; AS_NULL_VALUE until it exists */
    asi_replication_params params;
    char client_info[256];          /* client info sent to the source */
    asi_replication_state state;
    int64_t deadline_ns;            /* deadline of the current state, if it has one */
    int64_t look_ns;                /* time of the next check for errors of the source */
    asi_client_session source;      /* session with the source archive */
    asi_connect connect;
    asi_codec_request request;      /* to the source */
    asi_call call;                  /* the request in flight */
    /* The source recording at the time of the query. */
    asi_catalog_record record;      /* its texts point to the next three fields */
    char *stripped_channel;         /* owned */
    char *original_channel;
    char *source_identity;
    bool has_record;
    /* The copy. */
    int64_t replay_position;
    int64_t subscription_id;        /* subscription of the destination's recording; AS_NULL_VALUE: none (any more) */
    int64_t source_position;        /* live merge: recorded position of the source, as last reported */
    int64_t end_position;           /* position where the destination's recording ended */
    bool has_ended;
    int64_t token;
    int64_t publication_request;    /* AS_NULL_VALUE: none in flight; also in the next field */
    int64_t destination_request;
    as_publication *requests;       /* second publication to the source, which presents the token; owned */
    char replay_destination[ASI_ARCHIVE_CHANNEL_CAPACITY];
    int64_t replay_session_id;      /* AS_NULL_VALUE: no replay at the source (any more) */
    as_image *image;                /* retained */
    int64_t query_ns;               /* live merge: time of the next query of the source's position */
    bool is_live_added;
    bool is_merged;
} asi_replication;

/* Sends ERROR with the replication's id, then closes the replication. */
void asi_replication_fail(asi_replication *replication, int32_t code, const char *text);
/* Ends active operations, signals REPLICATE_END, and leaves the rest to CLOSING. */
void asi_replication_finish(asi_replication *replication);
void asi_replication_signal(const asi_replication *replication, int64_t position, as_recording_signal signal);
/* Enters the state and sets its deadline. */
void asi_replication_enter(asi_replication *replication, asi_replication_state state);
/* Returns the subscription that records the copy. NULL: it is closed. */
asi_recording_subscription *asi_replication_recorded(const asi_replication *replication);
/* True when the subscription closed early: it was refused (and the error was reported), or another client stopped it. Ends the
 * replication. */
bool asi_replication_is_recording_lost(asi_replication *replication, const asi_recording_subscription *recorded);
/* AS_OK when no destination request is outstanding: the driver has applied the last one, or there was none. */
as_result asi_replication_poll_destination(asi_replication *replication) AS_MUST_USE;

#endif
