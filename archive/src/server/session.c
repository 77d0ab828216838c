/* See session.h. */
#include "server/session.h"

#include <stdio.h>

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

void asi_control_finish(asi_control_session *session, const char *reason, bool is_unexpected)
{
    if (ASI_CONTROL_DONE == session->state)
    {
        return;
    }
    session->state = ASI_CONTROL_DONE;
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
