/* See tokens.h. */
#include "server/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "server/control.h"
#include "server/report.h"

#define TOKENS_MAX 4096 /* a session that asks for tokens all day fills this, not the memory */

typedef struct asi_replay_token
{
    struct asi_replay_token *next;
    int64_t token;
    int64_t recording_id;
    int64_t control_session_id;
    int64_t deadline_ns;
} asi_replay_token;

static asi_replay_token *find(const as_archive *archive, int64_t token)
{
    asi_replay_token *at = archive->tokens;
    while (NULL != at && at->token != token)
    {
        at = at->next;
    }
    return at;
}

/* Whoever guesses a token reads a recording, so it comes from the kernel. */
static as_result draw(const as_archive *archive, int64_t *token)
{
    do
    {
        if ((ssize_t)sizeof(*token) != getrandom(token, sizeof(*token), 0))
        {
            return asi_fail_errno(AS_E_INTERNAL, errno, "no random number for a replay token");
        }
    } while (AS_NULL_VALUE == *token || NULL != find(archive, *token));
    return AS_OK;
}

static int64_t count(const as_archive *archive)
{
    int64_t counted = 0;
    for (const asi_replay_token *at = archive->tokens; NULL != at; at = at->next)
    {
        counted++;
    }
    return counted;
}

void asi_tokens_issue(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    if (count(archive) >= TOKENS_MAX)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC,
            "%d replay tokens are out already: use some, or wait until they expire", TOKENS_MAX);
        return;
    }
    int64_t token = AS_NULL_VALUE;
    asi_replay_token *issued = calloc(1, sizeof(*issued));
    const as_result drawn = NULL == issued ? asi_fail(AS_E_INTERNAL, 0, "no memory for a replay token") : draw(archive, &token);
    if (AS_OK != drawn)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        free(issued);
        return;
    }
    *issued = (asi_replay_token){
        .next = archive->tokens,
        .token = token,
        .recording_id = request->recording_id,
        .control_session_id = session->id,
        .deadline_ns = asi_clock_ns(&archive->clock) + archive->config.connect_timeout_ns,
    };
    archive->tokens = issued;
    asi_control_ok(session, request->correlation_id, token);
}

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
    /* A token is shown on another image than the session's, whose client waits for an answer. Where there are logins nobody hears of
     * what another connection asks. */
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
    const asi_replay_token *token = find(archive, request->replay_token);
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

/* Takes out the tokens of a session, or, with AS_NULL_VALUE, those that are too old. */
static int drop(as_archive *archive, int64_t control_session_id, int64_t now_ns)
{
    int dropped = 0;
    for (asi_replay_token **at = &archive->tokens; NULL != *at;)
    {
        asi_replay_token *token = *at;
        const bool is_over = AS_NULL_VALUE == control_session_id ? now_ns > token->deadline_ns :
            control_session_id == token->control_session_id;
        if (is_over)
        {
            *at = token->next;
            free(token);
            dropped++;
        }
        else
        {
            at = &token->next;
        }
    }
    return dropped;
}

int asi_tokens_expire(as_archive *archive)
{
    return NULL == archive->tokens ? 0 : drop(archive, AS_NULL_VALUE, asi_clock_ns(&archive->clock));
}

void asi_tokens_drop_session(as_archive *archive, int64_t control_session_id)
{
    drop(archive, control_session_id, 0);
}

void asi_tokens_close(as_archive *archive)
{
    drop(archive, AS_NULL_VALUE, INT64_MAX);
}
