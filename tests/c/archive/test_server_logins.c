/* Goal: a flood of logins costs an archive little memory and time, and keeps no honest client out. Method: bare sessions
 * (server_rig.h) against an invoked archive with a credentials file; the flood has a connection of its own. The order among
 * many addresses is tested with sessions made by hand. */
#include <glob.h>

#include "server/control.h"
#include "server/logins.h"
#include "users_rig.h"

#define FLOOD_STREAM 21

/* A stranger's image on which he can open any number of sessions, the answers to all in one subscription. */
static raw_session *open_flood(void)
{
    raw_session *flood = raw_open(&rig);
    as_subscription_close(flood->responses);
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc?alias=flood", FLOOD_STREAM, &flood->responses), AS_OK);
    return flood;
}

static void flood_with(raw_session *flood, const char *channel, const char *credentials, int count)
{
    for (int i = 0; i < count; i++)
    {
        asi_codec_request request = request_of(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
        request.stream_id = FLOOD_STREAM;
        request.client_version = ASI_CODEC_PROTOCOL_VERSION;
        request.channel = asi_codec_text(channel);
        request.encoded_credentials = (asi_codec_var){ .data = credentials, .length = (int64_t)strlen(credentials) };
        raw_send(flood, &request);
    }
}

/* Sessions that were told of their rejection. */
static int rejections(raw_session *flood)
{
    int count = 0;
    raw_poll(flood);
    for (int i = 0; i < flood->event_count; i++)
    {
        bool is_first = ASI_CODEC_CONTROL_RESPONSE == flood->events[i].template_id;
        for (int j = 0; is_first && j < i; j++)
        {
            is_first = flood->events[j].correlation_id != flood->events[i].correlation_id;
        }
        count += is_first;
    }
    return count;
}

static int64_t longest_log(void)
{
    int64_t longest = 0;
    char pattern[SCRATCH_CAPACITY + 64];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/publications/*", rig.aeron_dir);
    CHECK_I64(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
    {
        struct stat st;
        CHECK_I64(stat(found.gl_pathv[i], &st), 0);
        longest = st.st_size > longest ? st.st_size : longest;
    }
    globfree(&found);
    return longest;
}

#define LARGE "aeron:ipc?alias=flood|term-length=1g|sparse=false|mtu=65504"

/* What a stranger asks for costs a log of the smallest terms, what a user asks for as much as the settings allow. */
static void logs_of_answers_are_small(void)
{
    raw_session *flood = open_flood();
    flood_with(flood, LARGE, "alice:wrong", 1);
    UNTIL(&rig, rejections(flood) == 1);
    CHECK_I64(longest_log(), 3 * 64 * 1024 + 4096);
    flood_with(flood, LARGE, "alice", 1);
    UNTIL(&rig, (raw_poll(flood), NULL != raw_find(flood, ASI_CODEC_CHALLENGE, flood->last_correlation_id)));
    CHECK_I64(longest_log(), 3 * 64 * 1024 + 4096);
    flood_with(flood, LARGE, "alice:open sesame", 1);
    CHECK_I64(raw_await(flood, ASI_CODEC_CONTROL_RESPONSE, flood->last_correlation_id)->code, ASI_CODEC_OK);
    CHECK_I64(longest_log(), 3 * 1024 * 1024 + 4096);
    raw_close(flood);
}

static int waiting(void)
{
    int count = 0;
    for (const asi_control_session *at = rig.archive->sessions->first; NULL != at; at = at->next)
    {
        count += ASI_LOGIN_NONE != at->login_class && AS_AUTH_WAIT == at->decision;
    }
    return count;
}

/* One who has hundreds of wrong passwords in the queue keeps nobody else waiting for all of them. */
static void passwords_are_looked_at_in_turns(void)
{
    raw_session *flood = open_flood();
    raw_session *honest = open_flood(); /* another connection, of the same address */
    flood_with(flood, "aeron:ipc?alias=flood", "alice:wrong", 300); /* sixty-four of them stay */
    UNTIL(&rig, waiting() > 40);
    const int before = rejections(flood);
    flood_with(honest, "aeron:ipc?alias=flood", "bob:b:o:b", 1);
    CHECK_I64(raw_await(honest, ASI_CODEC_CONTROL_RESPONSE, honest->last_correlation_id)->code, ASI_CODEC_OK);
    CHECK(rejections(flood) < before + 20); /* of forty and more; those that were decided, but not read, count too */
    UNTIL(&rig, rejections(flood) > before + 30);
    raw_close(honest);
    raw_close(flood);
}

/* Sessions whose answers nobody listens to yet, and whose passwords were not looked at. */
static int unheard(void)
{
    int count = 0;
    for (const asi_control_session *at = rig.archive->sessions->first; NULL != at; at = at->next)
    {
        count += ASI_CONTROL_CONNECTING == at->state && AS_AUTH_WAIT == at->decision;
    }
    return count;
}

/* A request may bear anybody's address: who does not listen to answers there has no password looked at, and does not come before others. */
static void passwords_of_who_hears_no_answer_are_not_looked_at(void)
{
    raw_session *flood = open_flood();
    raw_session *honest = raw_open(&rig);
    as_subscription_close(flood->responses);
    flood->responses = NULL;
    flood_with(flood, "aeron:ipc?alias=flood", "alice:open sesame", 20);
    UNTIL(&rig, unheard() == 20);
    rig_turn_times(&rig, 40);
    CHECK_I64(unheard(), 20);
    CHECK_I64(rig.archive->logins->deciding_session_id, AS_NULL_VALUE);
    CHECK_I64(connect_with(honest, "bob:b:o:b")->code, ASI_CODEC_OK);
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc?alias=flood", FLOOD_STREAM, &flood->responses), AS_OK);
    CHECK_I64(raw_await(flood, ASI_CODEC_CONTROL_RESPONSE, flood->last_correlation_id)->code, ASI_CODEC_OK);
    raw_close(honest);
    raw_close(flood);
}

/* Where a publication of answers would prove nothing, or would be too large before the login. */
static void channels_that_prove_their_source(void)
{
    static const struct { const char *channel; const char *source; bool proves; } ROWS[] = {
        { "aeron:ipc", "aeron:ipc", true },
        { "aeron:ipc", "10.1.2.3:4000", false },
        { "aeron:udp?endpoint=10.1.2.3:8020", "10.1.2.3:4000", true },
        { "aeron:udp?endpoint=10.1.2.3:8020|term-length=64k", "10.1.2.3:4000", true },
        { "aeron:udp?endpoint=10.1.2.3:8020|term-length=128k", "10.1.2.3:4000", false },
        { "aeron:udp?endpoint=10.1.2.3:8020|term-length=all", "10.1.2.3:4000", false },
        { "aeron:udp?endpoint=10.1.2.3:8020|session-id=7", "10.1.2.3:4000", true }, /* as stock clients' */
        { "aeron:udp?endpoint=10.1.2.4:8020", "10.1.2.3:4000", false },
        { "aeron:udp?endpoint=my.host:8020", "10.1.2.3:4000", false },
        { "aeron:udp?control=10.1.2.3:1|control-mode=response", "10.1.2.3:4000", true },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_uri uri;
        CHECK_I64(asi_channel_parse_untrusted(&uri, ROWS[i].channel, (int64_t)strlen(ROWS[i].channel)), AS_OK);
        if (ROWS[i].proves != asi_channel_proves_source(&uri, rig.config, ROWS[i].source))
        {
            fprintf(stderr, "%s of %s\n", ROWS[i].channel, ROWS[i].source);
            CHECK(false);
        }
    }
}

/* -- turns among many addresses ------------------------------------------------------------------------------------------------------ */

#define QUEUE_CAPACITY 1024

typedef struct queue
{
    as_archive *archive;
    asi_sessions listed;
    asi_logins logins;
    asi_control_session sessions[QUEUE_CAPACITY];
    int count;
} queue;

static queue *open_queue(void)
{
    queue *made = calloc(1, sizeof(*made));
    CHECK(NULL != made && NULL != (made->archive = calloc(1, sizeof(as_archive))));
    made->archive->sessions = &made->listed;
    made->archive->logins = &made->logins;
    made->archive->auth.is_working = true;
    made->archive->logins->deciding_session_id = AS_NULL_VALUE;
    return made;
}

static void close_queue(queue *over)
{
    free(over->archive);
    free(over);
}

/* A session whose password waits. */
static asi_control_session *wait_in(queue *to, int32_t source, bool is_proven, int64_t now_ns)
{
    CHECK(to->count < QUEUE_CAPACITY);
    asi_control_session *session = &to->sessions[to->count];
    *session = (asi_control_session){ .archive = to->archive, .id = to->count++, .source = source, .image_correlation_id = source,
        .is_asked = true, .decision = AS_AUTH_WAIT, .state = is_proven ? ASI_CONTROL_CONNECTED : ASI_CONTROL_INIT,
        .next = to->archive->sessions->first };
    to->archive->sessions->first = session;
    asi_logins_queue(session, now_ns);
    return session;
}

/* Looks at passwords, all of which are wrong but the session's own, until it is its turn; how many before it. */
static int passwords_before(queue *in, asi_control_session *session, int64_t now_ns)
{
    for (int count = 0; count < QUEUE_CAPACITY; count++)
    {
        asi_logins_choose(in->archive);
        asi_control_session *chosen = asi_control_find(in->archive, in->archive->logins->deciding_session_id);
        CHECK(NULL != chosen && AS_AUTH_WAIT == chosen->decision);
        chosen->decision = chosen == session ? AS_AUTH_ACCEPT : AS_AUTH_REJECT;
        chosen->state = ASI_CONTROL_CONNECTED;
        if (chosen == session)
        {
            chosen->state = ASI_CONTROL_AUTHENTICATED;
            return count;
        }
        asi_logins_on_wrong(chosen, now_ns);
    }
    CHECK(false);
    return -1;
}

#define ADDRESSES 20
#define OF_EACH 16
#define HONEST 900

static void fill(queue *to, bool is_proven, int64_t now_ns)
{
    for (int i = 0; i < ADDRESSES * OF_EACH; i++)
    {
        wait_in(to, i % ADDRESSES, is_proven, now_ns);
    }
}

/* Who writes the addresses of others, the honest client's among them, has every other turn, and no more. */
static void forged_addresses_have_a_class_of_their_own(void)
{
    queue *at = open_queue();
    fill(at, false, 0);
    for (int i = 0; i < OF_EACH; i++)
    {
        wait_in(at, HONEST, false, 0);
    }
    for (int i = 0; i < 50; i++)
    {
        CHECK(passwords_before(at, wait_in(at, HONEST, true, 0), 0) <= 1);
    }
    close_queue(at);
}

/* Nor do addresses that had a wrong password: each has one turn among those that had none. */
static void addresses_with_wrong_passwords_have_a_class_of_their_own(void)
{
    queue *at = open_queue();
    fill(at, true, 0);
    CHECK(passwords_before(at, wait_in(at, HONEST, true, 0), 0) <= 2 * ADDRESSES); /* the first of each, and as many second ones */
    for (int i = 0; i < 50; i++)
    {
        CHECK(passwords_before(at, wait_in(at, HONEST, true, 0), 0) <= 1);
    }
    fill(at, false, 0);
    for (int i = 0; i < 50; i++)
    {
        CHECK(passwords_before(at, wait_in(at, HONEST, true, 0), 0) <= 2);
    }
    close_queue(at);
}

/* However much comes in other classes: an address with a wrong password, and one that can't be proven, have a third of the turns. */
static void no_class_is_locked_out(void)
{
    queue *at = open_queue();
    asi_control_session *wrong = wait_in(at, HONEST, true, 0);
    CHECK_I64(passwords_before(at, wait_in(at, HONEST + 1, true, 0), 0), 1);
    CHECK_I64(wrong->decision, AS_AUTH_REJECT);
    for (int i = 0; i < ADDRESSES * OF_EACH; i++)
    {
        wait_in(at, HONEST + 2 + i % 2, true, 0);
        wait_in(at, i % ADDRESSES, false, 0);
    }
    asi_control_session *again = wait_in(at, HONEST, true, 0);
    CHECK_I64(again->login_class, ASI_LOGIN_FAILED);
    CHECK(passwords_before(at, again, 0) <= 2);
    CHECK(passwords_before(at, wait_in(at, HONEST + 9, false, 0), 0) <= 3 * (ADDRESSES + 1));
    close_queue(at);
}

/* The turns of an address are shared by its connections: one with sixty passwords in the queue keeps no other waiting for them. */
static void connections_of_an_address_have_turns(void)
{
    queue *at = open_queue();
    for (int i = 0; i < 60; i++)
    {
        wait_in(at, HONEST, true, 0)->image_turn = i;
    }
    asi_control_session *other = wait_in(at, HONEST, true, 0);
    other->image_turn = 1; /* of another connection, which begins where the first one has got to */
    CHECK(passwords_before(at, other, 0) <= 2);
    close_queue(at);
}

/* What others wrote in its name is not held against an address, and its own is forgotten after a minute. */
static void wrong_passwords_count_for_a_minute(void)
{
    const int64_t minute_ns = 60000000000LL;
    queue *at = open_queue();
    asi_control_session *forged = wait_in(at, HONEST, false, 0);
    CHECK_I64(passwords_before(at, wait_in(at, HONEST + 1, true, 0), 0), 0);
    CHECK_I64(passwords_before(at, wait_in(at, HONEST + 1, false, 0), 0), 1);
    CHECK_I64(forged->decision, AS_AUTH_REJECT);
    asi_control_session *honest = wait_in(at, HONEST, true, 0);
    asi_control_session *beside = wait_in(at, HONEST, true, 0);
    CHECK_I64(honest->login_class, ASI_LOGIN_PROVEN);
    honest->decision = AS_AUTH_REJECT;
    asi_logins_on_wrong(honest, 1000);
    CHECK_I64(beside->login_class, ASI_LOGIN_FAILED);
    CHECK_I64(wait_in(at, HONEST, true, 1000 + minute_ns - 1)->login_class, ASI_LOGIN_FAILED);
    CHECK_I64(wait_in(at, HONEST, true, 1000 + minute_ns)->login_class, ASI_LOGIN_PROVEN);
    close_queue(at);
}

/* The oldest of the image that has most goes, so that others come in. */
static void sessions_that_nobody_let_in_are_limited(void)
{
    rig_close_archive(&rig);
    rig_set(&rig, "aeron.spark.archive.undecided.sessions.max", "4");
    rig_open_archive(&rig);
    raw_session *flood = open_flood();
    raw_session *honest = raw_open(&rig);
    flood_with(flood, "aeron:ipc?alias=flood", "alice", 12); /* challenged, and never answered */
    UNTIL(&rig, rig_has_logged(&rig, "too many control sessions are not accepted yet"));
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 4);
    CHECK_I64(connect_with(honest, "bob:b:o:b")->code, ASI_CODEC_OK);
    flood_with(flood, "aeron:ipc?alias=flood", "alice", 12);
    rig_turn_times(&rig, 100);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    honest->id = raw_find(honest, ASI_CODEC_CONTROL_RESPONSE, honest->last_correlation_id)->control_session_id;
    CHECK_I64(raw_ask_ok(honest, &request), 42);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 5);
    raw_close(honest);
    raw_close(flood);
}

/* Of sessions with a connection each those go that hear no answers, as long as they are more. */
static void who_hears_answers_stays(void)
{
    raw_session *floods[6];
    raw_session *honest = raw_open(&rig);
    send_connect(honest, "alice", 5); /* challenged; the oldest of all */
    UNTIL(&rig, (raw_poll(honest), NULL != raw_find(honest, ASI_CODEC_CHALLENGE, honest->last_correlation_id)));
    const int64_t id = raw_find(honest, ASI_CODEC_CHALLENGE, honest->last_correlation_id)->control_session_id;
    for (int i = 0; i < 6; i++)
    {
        floods[i] = open_flood();
        as_subscription_close(floods[i]->responses);
        floods[i]->responses = NULL;
    }
    for (int i = 0; i < 6; i++)
    {
        flood_with(floods[i], "aeron:ipc?alias=flood", "alice:wrong", 1);
        rig_turn_times(&rig, 20);
        const asi_control_session *session = asi_control_find(rig.archive, id);
        CHECK(NULL != session && ASI_CONTROL_CHALLENGED == session->state);
    }
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 4);
    for (int i = 0; i < 6; i++)
    {
        raw_close(floods[i]);
    }
    raw_close(honest);
}

/* Of users whose counts of iterations differ an unknown one can be any, and stays what he was taken for. */
static void unknown_users_look_like_known_ones(void)
{
    raw_session *session = open_flood();
    char first[2][128];
    for (int round = 0; round < 2; round++)
    {
        int counts[2] = { 0, 0 };
        for (int i = 0; i < 40; i++)
        {
            char name[32];
            snprintf(name, sizeof(name), "nobody-%d", i);
            flood_with(session, "aeron:ipc?alias=flood", name, 1);
            const asi_codec_event *event = NULL;
            UNTIL(&rig, (raw_poll(session),
                event = raw_find(session, ASI_CODEC_CHALLENGE, session->last_correlation_id), NULL != event));
            const long iterations = strtol(event->encoded_challenge.data + strlen("scram-sha-256 "), NULL, 10);
            CHECK(ITERATIONS == iterations || 2 * ITERATIONS == iterations);
            counts[ITERATIONS == iterations ? 0 : 1]++;
        }
        CHECK(counts[0] > 4 && counts[1] > 4);
        snprintf(first[round], sizeof(first[round]), "%d %d", counts[0], counts[1]);
    }
    CHECK(0 == strcmp(first[0], first[1]));
    raw_close(session);
}

static void two_counts_of_iterations(void)
{
    char text[1024];
    open_with_users();
    line_of(text, sizeof(text), "alice", "a", "all");
    char *count = strstr(text, "$1000$");
    memcpy(count, "$2000$", 6);
    line_of(text + strlen(text), sizeof(text) - strlen(text), "bob", "b", "all");
    rig_close_archive(&rig);
    write_file(path_of_file, text, 0600);
    rig_open_archive(&rig);
}

/* Where answers of an archive with users may go. */
static void answers_go_to_where_the_request_came_from(void)
{
    static const struct { const char *channel; const char *source; bool stranger; bool user; } ROWS[] = {
        { "aeron:ipc", "aeron:ipc", true, true },
        { "aeron:ipc", "127.0.0.1:4000", false, false },
        { "aeron:udp?endpoint=127.0.0.1:8020", "aeron:ipc", false, false },
        { "aeron:udp?endpoint=10.1.2.3:8020", "10.1.2.3:4000", true, true },
        { "aeron:udp?endpoint=10.1.2.30:8020", "10.1.2.3:4000", false, false },
        { "aeron:udp?endpoint=10.1.2.4:8020", "10.1.2.3:4000", false, false },
        { "aeron:udp?endpoint=[fd00::1]:8020", "[fd00::1]:4000", true, true },
        { "aeron:udp?endpoint=[fd00::2]:8020", "[fd00::1]:4000", false, false },
        { "aeron:udp?endpoint=localhost:8020", "127.0.0.1:4000", true, true },
        { "aeron:udp?endpoint=localhost:8020", "[::1]:4000", true, true },
        { "aeron:udp?endpoint=localhost:8020", "10.1.2.3:4000", false, false },
        { "aeron:udp?endpoint=my.host:8020", "10.1.2.3:4000", false, true },
        { "aeron:udp?endpoint=224.0.1.1:8020", "10.1.2.3:4000", false, false },
        { "aeron:udp?endpoint=10.1.2.3:8020|control=10.1.2.3:1|control-mode=dynamic", "10.1.2.3:4000", false, false },
        { "aeron:udp?control=10.1.2.3:1|control-mode=response", "10.1.2.3:4000", true, true },
        { "aeron:udp?tags=3", "10.1.2.3:4000", false, false },
        { "aeron:udp?tags=3|endpoint=10.1.2.3:8020", "10.1.2.3:4000", false, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_uri uri;
        CHECK_I64(asi_channel_parse_untrusted(&uri, ROWS[i].channel, (int64_t)strlen(ROWS[i].channel)), AS_OK);
        for (int is_user = 0; is_user < 2; is_user++)
        {
            const bool is_allowed = AS_OK == asi_channel_check_response(&uri, ROWS[i].source, is_user);
            if (is_allowed != (is_user ? ROWS[i].user : ROWS[i].stranger))
            {
                fprintf(stderr, "%s of %s: %d\n", ROWS[i].channel, ROWS[i].source, is_allowed);
                CHECK(false);
            }
        }
    }
    raw_session *flood = open_flood();
    flood_with(flood, "aeron:udp?endpoint=127.0.0.1:8020", "alice:open sesame", 1);
    UNTIL(&rig, rig_has_logged(&rig, "response channel leads elsewhere than aeron:ipc"));
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    raw_close(flood);
    rig_close_archive(&rig);
    rig_set(&rig, "aeron.spark.archive.control.response.anywhere", "true");
    rig_open_archive(&rig);
    flood = open_flood();
    as_subscription *answers = NULL;
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:udp?endpoint=127.0.0.1:0", FLOOD_STREAM, &answers), AS_OK);
    char endpoint[64], channel[128];
    UNTIL(&rig, AS_OK == as_subscription_resolved_endpoint(answers, endpoint, sizeof(endpoint)));
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=%s", endpoint);
    flood_with(flood, channel, "alice:open sesame", 1);
    UNTIL(&rig, as_subscription_image_count(answers) == 1);
    as_subscription_close(answers);
    raw_close(flood);
}

int main(void)
{
    open_with_users();
    RUN(logs_of_answers_are_small);
    RUN(passwords_are_looked_at_in_turns);
    RUN(passwords_of_who_hears_no_answer_are_not_looked_at);
    RUN(channels_that_prove_their_source);
    RUN(forged_addresses_have_a_class_of_their_own);
    RUN(addresses_with_wrong_passwords_have_a_class_of_their_own);
    RUN(no_class_is_locked_out);
    RUN(connections_of_an_address_have_turns);
    RUN(wrong_passwords_count_for_a_minute);
    RUN(sessions_that_nobody_let_in_are_limited);
    RUN(who_hears_answers_stays);
    RUN(answers_go_to_where_the_request_came_from);
    rig_close(&rig);
    two_counts_of_iterations();
    RUN(unknown_users_look_like_known_ones);
    rig_close(&rig);
    return 0;
}
