/* See tokens.h. */
#include "server/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "server/reply.h"

#define TOKENS_MAX 4096 /* bounds the memory of sessions that request tokens without end */

asi_replay_token *asi_tokens_find(const as_archive *archive, int64_t token)
{
    asi_replay_token *at = archive->tokens;
    while (NULL != at && at->token != token)
    {
        at = at->next;
    }
    return at;
}

/* Draws the token from the kernel, because a guessed token gives access to a recording. */
static as_result draw(const as_archive *archive, int64_t *token)
{
    do
    {
        if ((ssize_t)sizeof(*token) != getrandom(token, sizeof(*token), 0))
        {
            return asi_fail_errno(AS_E_INTERNAL, errno, "no random number for a replay token");
        }
    } while (AS_NULL_VALUE == *token || NULL != asi_tokens_find(archive, *token));
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

/* Removes the tokens of a session, or, with AS_NULL_VALUE, those that have expired. */
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
