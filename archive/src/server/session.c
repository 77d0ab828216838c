/* See session.h. */
#include "server/session.h"

#include <stdio.h>

#include "base/assert.h"
#include "server/report.h"

asi_control_session *asi_control_find(as_archive *archive, int64_t control_session_id)
{
    asi_control_session *session = archive->sessions->first;
    while (NULL != session && (session->id != control_session_id || ASI_CONTROL_DONE == session->state))
    {
        session = session->next;
    }
    return session;
}

void asi_control_enter(asi_control_session *session, asi_control_state state)
{
    static const uint32_t MOVES[] = {
        [ASI_CONTROL_INIT] = 1U << ASI_CONTROL_CONNECTING | 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_CONNECTING] = 1U << ASI_CONTROL_CONNECTED | 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_CONNECTED] = 1U << ASI_CONTROL_CHALLENGED | 1U << ASI_CONTROL_AUTHENTICATED |
            1U << ASI_CONTROL_REJECTED | 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_CHALLENGED] = 1U << ASI_CONTROL_CONNECTED | 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_AUTHENTICATED] = 1U << ASI_CONTROL_AUTHENTICATED | 1U << ASI_CONTROL_ACTIVE | 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_ACTIVE] = 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_REJECTED] = 1U << ASI_CONTROL_DONE,
        [ASI_CONTROL_DONE] = 0
    };
    AS_ASSERT_MOVE(MOVES, session->state, state);
    session->state = state;
}

void asi_control_finish(asi_control_session *session, const char *reason, bool is_unexpected)
{
    if (ASI_CONTROL_DONE == session->state)
    {
        return;
    }
    asi_control_enter(session, ASI_CONTROL_DONE);
    if (is_unexpected)
    {
        char text[ASI_CONTROL_REASON_CAPACITY + sizeof(session->response_channel.text)];
        snprintf(text, sizeof(text), "controlSessionId=%lld (controlResponseStreamId=%d controlResponseChannel=%s) terminated: %s",
            (long long)session->id, session->response_stream_id, session->response_channel.text, reason);
        asi_archive_log_of_peer(session->archive, "WARN", 0, text, "control sessions terminated");
        if (AS_OK != as_image_reject(session->image, reason))
        {
            asi_archive_log(session->archive, 0, NULL);
        }
    }
}
