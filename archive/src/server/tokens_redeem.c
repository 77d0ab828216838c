/* See tokens_redeem.h. */
#include "server/tokens_redeem.h"

#include <stdio.h>

#include "server/control.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/tokens.h"

bool asi_tokens_are_shown(const asi_codec_request *request)
{
    asi_uri uri;
    return (ASI_CODEC_REPLAY == request->template_id || ASI_CODEC_BOUNDED_REPLAY == request->template_id) &&
        AS_NULL_VALUE != request->replay_token &&
        AS_OK == asi_channel_parse_untrusted(&uri, request->channel.data, request->channel.length) &&
        asi_channel_is_response(&uri);
}

static asi_control_session *refuse(as_archive *archive, const asi_codec_request *request, const as_image *image)
{
    char text[96];
    snprintf(text, sizeof(text), "Unknown session or token timeout for replayToken=%lld", (long long)request->replay_token);
    asi_archive_log_of_peer(archive, "ERROR", ASI_CODEC_E_GENERIC, text, "unknown session or token timeout");
    /* A token is presented on another image than that of its session, whose client waits for an answer. With logins, a session
     * gets no answers to requests of another connection. */
    asi_control_session *named = asi_auth_has_principals(&archive->auth) ? asi_control_session_for(archive, request, image) :
        asi_control_find(archive, request->control_session_id);
    if (NULL != named && (ASI_CONTROL_AUTHENTICATED == named->state || ASI_CONTROL_ACTIVE == named->state))
    {
        asi_control_error(named, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", text);
    }
    return NULL;
}

asi_control_session *asi_tokens_redeem(
    as_archive *archive, asi_codec_request *request, const as_image *image, asi_channel *channel)
{
    const asi_replay_token *token = asi_tokens_find(archive, request->replay_token);
    if (NULL == token || token->recording_id != request->recording_id ||
        asi_clock_ns(&archive->clock) > token->deadline_ns)
    {
        return refuse(archive, request, image);
    }
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    const asi_control_session *owner = asi_control_find(archive, token->control_session_id);
    request->control_session_id = token->control_session_id;
    asi_control_session *session = NULL == owner ? NULL : asi_control_session_for(archive, request, owner->image);
    if (NULL == session)
    {
        return NULL;
    }
    asi_uri uri;
    as_result result = asi_channel_parse_untrusted(&uri, request->channel.data, request->channel.length);
    result = AS_OK == result ? asi_channel_answer_to(&uri, constants.correlation_id, channel) : result;
    if (AS_OK != result)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        return NULL;
    }
    request->channel = asi_codec_text(channel->text);
    return session;
}
