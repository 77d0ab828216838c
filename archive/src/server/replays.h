/* Replays as requested by clients. Thread rule: conductor only, except the queues. Spec: 08 §7. */
#ifndef ASI_SERVER_REPLAYS_H
#define ASI_SERVER_REPLAYS_H

#include "codec/request.h"
#include "replay/replayer.h"
#include "server/archive.h"
#include "server/uses.h"

typedef struct asi_replay
{
    asi_replay_session session;      /* first: the replayer returns this pointer */
    asi_use use;
    struct asi_replay *next;
    as_auth_bytes owner;             /* principal of the session that requested it */
    int64_t publication_request;     /* AS_NULL_VALUE once the replay runs */
} asi_replay;

typedef struct asi_replays
{
    asi_replay *first;               /* replays being created and running */
    int64_t next_number;
    asi_replayer replayer;
    asi_intrusive_queue closed;      /* filled by the replayer */
    asi_intrusive_queue answers;     /* the replayer's answers to requesters */
} asi_replays;

void asi_replays_start(asi_control_session *session, const asi_codec_request *request);
void asi_replays_stop(asi_control_session *session, const asi_codec_request *request);
void asi_replays_stop_all(asi_control_session *session, const asi_codec_request *request);
int asi_replays_step(as_archive *archive);
/* The replayer must already be closed. */
void asi_replays_close(as_archive *archive);

#endif
