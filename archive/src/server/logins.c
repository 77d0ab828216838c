/* See logins.h. */
#include "server/logins.h"

#include <string.h>

#include "server/report.h"
#include "server/session.h"

#define FAILURE_COUNTS_NS 60000000000LL

static int32_t source_of(const as_archive *archive, const as_image *image)
{
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    const int64_t length = asi_source_address_length(constants.source_identity);
    uint64_t hash = archive->logins->source_seed;
    for (int64_t i = 0; i < length; i++)
    {
        hash = (hash ^ (uint8_t)constants.source_identity[i]) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
    }
    return (int32_t)(hash % ASI_LOGIN_SOURCES);
}

/* True when the client receives responses, which are sent to the source address of its requests. */
static bool is_proven(const asi_control_session *session) { return session->state >= ASI_CONTROL_CONNECTED; }

static int32_t image_of(const asi_control_session *session)
{
    return (int32_t)((uint64_t)session->image_correlation_id % ASI_LOGIN_SOURCES);
}

static bool is_undecided(const asi_control_session *session)
{
    return ASI_CONTROL_AUTHENTICATED != session->state && ASI_CONTROL_ACTIVE != session->state &&
        ASI_CONTROL_DONE != session->state;
}

static bool is_waiting(const asi_control_session *session)
{
    return is_undecided(session) && ASI_LOGIN_NONE != session->login_class && AS_AUTH_WAIT == session->decision;
}

/* Returns the number after the last one issued for the same source or image, whose session may have ended meanwhile, and at
 * least `now`. */
static int64_t next_turn(int64_t *last, int64_t now)
{
    *last = *last + 1 > now ? *last + 1 : now;
    return *last;
}

void asi_logins_begin(asi_control_session *session)
{
    session->source = source_of(session->archive, session->image);
    asi_logins *logins = session->archive->logins;
    session->image_turn = next_turn(&logins->image_turns[image_of(session)], logins->deciding_image_turn);
}

static void put_in_class(asi_control_session *session, asi_login_class login_class)
{
    as_archive *archive = session->archive;
    session->login_class = login_class;
    session->turn = next_turn(&archive->logins->source_turns[login_class][session->source], archive->logins->deciding_turns[login_class]);
}

void asi_logins_queue(asi_control_session *session, int64_t now_ns)
{
    const bool has_failed = now_ns < session->archive->logins->source_failures_ns[session->source];
    put_in_class(session, !is_proven(session) ? ASI_LOGIN_UNPROVEN : has_failed ? ASI_LOGIN_FAILED : ASI_LOGIN_PROVEN);
}

void asi_logins_on_wrong(const asi_control_session *session, int64_t now_ns)
{
    as_archive *archive = session->archive;
    if (ASI_LOGIN_PROVEN != session->login_class && ASI_LOGIN_FAILED != session->login_class)
    {
        return; /* another host may have used this source address */
    }
    archive->logins->source_failures_ns[session->source] = now_ns + FAILURE_COUNTS_NS;
    for (asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        if (is_waiting(at) && at->source == session->source && ASI_LOGIN_PROVEN == at->login_class)
        {
            put_in_class(at, ASI_LOGIN_FAILED);
        }
    }
}

static bool is_sooner(int64_t turn, int64_t id, int64_t other_turn, int64_t other_id)
{
    return turn < other_turn || (turn == other_turn && id < other_id);
}

/* Returns the waiting session whose source has the lowest slot number. */
static asi_control_session *first_of_class(const as_archive *archive, asi_login_class login_class)
{
    asi_control_session *first = NULL;
    for (asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        if (is_waiting(at) && at->login_class == login_class && (NULL == first || is_sooner(at->turn, at->id, first->turn, first->id)))
        {
            first = at;
        }
    }
    return first;
}

/* The slot belongs to the source; within the source, sessions are ordered by the slot numbers of their images. */
static asi_control_session *first_of_source(const as_archive *archive, asi_control_session *first)
{
    const int32_t source = first->source;
    const asi_login_class login_class = first->login_class;
    for (asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        if (is_waiting(at) && at->source == source && at->login_class == login_class &&
            is_sooner(at->image_turn, at->id, first->image_turn, first->id))
        {
            first = at;
        }
    }
    return first;
}

/* Alternates between the classes. NULL: no session waits. */
static asi_control_session *first_of_next_class(const as_archive *archive)
{
    int32_t at = (int32_t)archive->logins->deciding_class;
    asi_control_session *first = NULL;
    for (int32_t i = ASI_LOGIN_NONE + 1; NULL == first && i < ASI_LOGIN_CLASSES; i++)
    {
        at = at + 1 < ASI_LOGIN_CLASSES ? at + 1 : ASI_LOGIN_NONE + 1;
        first = first_of_class(archive, (asi_login_class)at);
    }
    return first;
}

void asi_logins_choose(as_archive *archive)
{
    if (!archive->auth.is_working)
    {
        return;
    }
    const asi_control_session *deciding = asi_control_find(archive, archive->logins->deciding_session_id);
    if (NULL != deciding && is_waiting(deciding))
    {
        return; /* a check that has begun runs to its end */
    }
    asi_control_session *by_source = first_of_next_class(archive);
    archive->logins->deciding_session_id = AS_NULL_VALUE;
    if (NULL != by_source)
    {
        asi_control_session *chosen = first_of_source(archive, by_source);
        const int64_t turn = by_source->turn;
        by_source->turn = chosen->turn;
        chosen->turn = turn;
        archive->logins->deciding_session_id = chosen->id;
        archive->logins->deciding_class = chosen->login_class;
        archive->logins->deciding_turns[chosen->login_class] = turn;
        archive->logins->deciding_image_turn = chosen->image_turn;
    }
}

typedef struct undecided
{
    int32_t by_source[ASI_LOGIN_SOURCES];
    int32_t by_image[ASI_LOGIN_SOURCES];
    int64_t by_proof[2]; /* sessions with unproven and with proven addresses, among those that may be ended */
    int64_t ending; /* finished sessions that are not freed yet */
} undecided;

static void count_undecided(const as_archive *archive, undecided *counts)
{
    memset(counts, 0, sizeof(*counts));
    for (const asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        counts->ending += ASI_CONTROL_DONE == at->state;
        if (is_undecided(at))
        {
            counts->by_source[at->source]++;
            counts->by_image[image_of(at)]++;
        }
    }
}

/* Order in which undecided sessions are ended. Criteria, from the first: the larger of the two groups of proven and unproven
 * addresses, so that neither group can displace the other; the source with the most sessions; a rejected session, which only
 * reports its rejection; the image with the most sessions; the oldest session. */
static bool goes_before(const undecided *counts, const asi_control_session *a, const asi_control_session *b)
{
    const int64_t differences[] = {
        counts->by_proof[is_proven(a)] - counts->by_proof[is_proven(b)],
        counts->by_source[a->source] - counts->by_source[b->source],
        (ASI_CONTROL_REJECTED == a->state) - (ASI_CONTROL_REJECTED == b->state),
        counts->by_image[image_of(a)] - counts->by_image[image_of(b)]
    };
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
    {
        if (0 != differences[i])
        {
            return differences[i] > 0;
        }
    }
    return a->id < b->id;
}

static bool may_go(const asi_control_session *session, int32_t source)
{
    return is_undecided(session) && (source < 0 || session->source == source);
}

/* `source` < 0: any source. */
static bool end_one(as_archive *archive, undecided *counts, int32_t source)
{
    asi_control_session *chosen = NULL;
    for (const asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        counts->by_proof[is_proven(at)] += may_go(at, source);
    }
    for (asi_control_session *at = archive->sessions->first; NULL != at; at = at->next)
    {
        if (may_go(at, source) && (NULL == chosen || goes_before(counts, at, chosen)))
        {
            chosen = at;
        }
    }
    if (NULL == chosen)
    {
        return false;
    }
    asi_archive_warn(archive, 0, "too many control sessions are not accepted yet: one of the source that has most of them is ended");
    asi_control_finish(chosen, "too many sessions are not accepted yet", false);
    return true;
}

bool asi_logins_make_room(as_archive *archive, const as_image *image)
{
    const as_archive_config *config = &archive->config;
    const int32_t source = source_of(archive, image);
    undecided counts;
    count_undecided(archive, &counts);
    if (asi_auth_has_principals(&archive->auth) && counts.by_source[source] >= config->max_undecided_sessions)
    {
        return end_one(archive, &counts, source);
    }
    return archive->sessions->count - counts.ending < config->max_control_sessions || end_one(archive, &counts, -1);
}
