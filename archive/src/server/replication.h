/* One replication: a recording of another archive, the source, copied into a recording of this one, the destination, by a replay
 * of the source that is recorded here. Spec: 08 §10.
 *
 *   CONNECT > DESCRIPTOR > [SOURCE_POSITION] > EXTEND > [DESTINATION] > [TOKEN > REQUESTS] > REPLAY > AWAIT_IMAGE
 *      > REPLICATE ........................ > CLOSING > freed        copied, ended, or stopped
 *      > CATCHUP <> LIVE_JOIN ............. > CLOSING > freed        merged: the recording goes on from the live stream
 *   any state --abort | error | timeout--> CLOSING
 *
 * The conductor steps it and nothing in it waits: the source's session is a client step machine, destinations and publications
 * are asked of the driver and looked for later. Extending the destination is the business of recordings.c, as for a request:
 * the destination stops with a valid position whatever ends the replication, and can be replicated further. What the recorder
 * writes passes through it as any recording does.
 *
 * Signals and errors go to the session that asked, if it is still there, on the replication's id.
 * Thread rule: the conductor's. */
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
    ASI_REPLICATION_DESTINATION,     /* manual subscription: its replay destination is added */
    ASI_REPLICATION_TOKEN,           /* response channel: a replay token, */
    ASI_REPLICATION_REQUESTS,        /* and the publication to show it on */
    ASI_REPLICATION_REPLAY,
    ASI_REPLICATION_AWAIT_IMAGE,
    ASI_REPLICATION_REPLICATE,
    ASI_REPLICATION_CATCHUP,
    ASI_REPLICATION_LIVE_JOIN,
    ASI_REPLICATION_CLOSING          /* what the driver still owes */
} asi_replication_state;

/* What the request asked for, checked. Texts are owned and never NULL. */
typedef struct asi_replication_params
{
    int64_t source_recording_id;
    int64_t stop_position;          /* AS_NULL_VALUE: as far as it goes */
    int64_t channel_tag_id;
    int64_t subscription_tag_id;
    int32_t source_stream_id;       /* of its control requests */
    int32_t file_io_max_length;     /* AS_NULL_VALUE: the source's */
    int32_t session_id;             /* of the replay; AS_NULL_VALUE: the source recording's */
    bool is_live;
    bool is_tagged;
    bool is_response;               /* the replication channel's mode is "response" */
    char *source_channel;
    char *response_channel;         /* of the session with the source */
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
    int64_t control_session_id;     /* that asked; may be gone */
    int64_t recording_id;           /* the destination; AS_NULL_VALUE until there is one */
    asi_replication_params params;
    char client_info[256];          /* towards the source */
    asi_replication_state state;
    int64_t deadline_ns;            /* of the state, where it has one */
    int64_t look_ns;                /* when to look for errors of the source next */
    asi_async source;               /* the session with the source archive */
    asi_connect connect;
    asi_codec_request request;      /* to the source: the one that is awaited */
    bool is_awaiting;
    asi_async_listing listing;
    /* The source recording as it was when asked. */
    asi_catalog_record record;      /* its texts point to the next three */
    char *stripped_channel;         /* owned */
    char *original_channel;
    char *source_identity;
    bool has_record;
    /* The copy. */
    int64_t replay_position;
    int64_t subscription_id;        /* of the destination's recording; AS_NULL_VALUE: none (any more) */
    int64_t source_position;        /* live merge: recorded position of the source, as last heard */
    int64_t end_position;           /* where the destination's recording ended */
    bool has_ended;
    int64_t token;
    int64_t publication_request;    /* AS_NULL_VALUE: none in flight, as the next */
    int64_t destination_request;
    as_publication *requests;       /* second publication to the source, for the token; owned */
    char replay_destination[ASI_ARCHIVE_CHANNEL_CAPACITY];
    int64_t replay_session_id;      /* AS_NULL_VALUE: no replay at the source (any more) */
    as_image *image;                /* retained */
    int64_t query_ns;               /* live merge: when to ask for the source's position next */
    bool is_live_added;
    bool is_merged;
} asi_replication;

/* ERROR on the replication's id, then it closes. */
void asi_replication_fail(asi_replication *replication, int32_t code, const char *text);
/* Ends what goes on, tells REPLICATE_END, and leaves the rest to CLOSING. */
void asi_replication_finish(asi_replication *replication);
void asi_replication_signal(const asi_replication *replication, int64_t position, as_recording_signal signal);
/* Gives the state its time. */
void asi_replication_enter(asi_replication *replication, asi_replication_state state);
/* The subscription that records the copy; NULL: it has gone. */
asi_recording_subscription *asi_replication_recorded(const asi_replication *replication);
/* The subscription has gone before its time, refused (and told) or stopped by somebody: ends the replication. */
bool asi_replication_is_recording_lost(asi_replication *replication, const asi_recording_subscription *recorded);
/* AS_OK once the driver has changed the destination that was asked of it, or none was. */
as_result asi_replication_poll_destination(asi_replication *replication) AS_MUST_USE;

#endif
