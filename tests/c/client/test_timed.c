/* Goal: messages go out in order, each on its own publication and not before it is due; what a publication refuses is offered
 * again, and the error of every interval is counted. Method: two publications of one client, a schedule by hand, and a
 * subscription that reads them back. */
#include <string.h>

#include "world.h"

#define COUNT 40

typedef struct given
{
    int32_t offsets[COUNT + 1];
    int64_t times_ns[COUNT];
    int32_t targets[COUNT];
    int64_t reserved[COUNT];
    uint8_t data[8 * COUNT];
    as_messages messages;
    as_schedule schedule;
    as_timing timing;
} given;

static given every(int64_t interval_ns)
{
    given all = { .schedule = { .time_ns = 5000, .pace = 1.0 }, .timing = { .last_due_ns = AS_NULL_VALUE } };
    for (int i = 0; i < COUNT; i++)
    {
        all.offsets[i + 1] = 8 * (i + 1);
        all.times_ns[i] = 5000 + i * interval_ns;
        all.targets[i] = i % 3 == 0;
        all.reserved[i] = 7 * i;
        all.data[8 * i] = (uint8_t)i;
    }
    return all;
}

/* Two publications, and the subscription of both. */
typedef struct streams
{
    pair first;
    as_publication *both[2];
    int32_t session_id; /* of the second */
    int numbers[2][COUNT];
    int counts[2];
} streams;

static streams open_streams(world *w)
{
    streams s = { .first = world_pair(w, IPC_64K, true) };
    as_publication *other = world_publication(w, IPC_64K, true);
    AWAIT(w, 2 == as_subscription_image_count(s.first.subscription) && as_publication_position_limit(other) > 0);
    as_publication_constants constants;
    as_publication_get_constants(other, &constants);
    s.both[0] = s.first.publication;
    s.both[1] = other;
    s.session_id = constants.session_id;
    return s;
}

static void close_streams(streams *s)
{
    as_publication_close(s->both[1]);
    world_close_pair(&s->first);
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    streams *s = context;
    const int which = header->session_id == s->session_id;
    if (8 == length)
    {
        CHECK_I64(header->reserved_value, 7 * data[0]);
        s->numbers[which][s->counts[which]++] = data[0];
    }
}

static void read_all(streams *s)
{
    while (as_subscription_poll(s->first.subscription, on_message, s, 100) > 0)
    {
    }
}

/* Each stream has its messages, in order and once. */
static void check_streams(const streams *s, const given *all)
{
    int at[2] = { 0 };
    for (int i = 0; i < COUNT; i++)
    {
        const int which = all->targets[i];
        CHECK(at[which] < s->counts[which]);
        CHECK_I64(s->numbers[which][at[which]++], i);
    }
    CHECK_I64(s->counts[0] + s->counts[1], COUNT);
}

/* Intervals; each of their messages is also counted by its lateness, and the first one. */
static int64_t counted(const as_timing *timing)
{
    int64_t errors = 0;
    int64_t late = 0;
    for (size_t i = 0; i < sizeof(timing->error_counts) / sizeof(timing->error_counts[0]); i++)
    {
        errors += timing->error_counts[i];
        late += timing->late_counts[i];
    }
    CHECK_I64(late, errors + (late > 0));
    return errors;
}

static as_result offer(const streams *s, given *all, int first, int64_t timeout_ns)
{
    all->messages = (as_messages){
        .count = COUNT - first, .data = all->data, .offsets32 = all->offsets + first, .reserved_values = all->reserved + first
    };
    all->schedule.times_ns = all->times_ns + first;
    all->schedule.targets = all->targets + first;
    return as_publications_offer_timed(s->both, 2, &all->messages, &all->schedule, timeout_ns, &all->timing);
}

static void each_when_it_is_due(world *w)
{
    streams s = open_streams(w);
    given all = every(1000000);
    all.schedule.pace = 0.5; /* twice as fast */
    all.schedule.at_ns = test_now_ns() + 2000000;
    int sent = 0;
    while (sent < COUNT)
    {
        CHECK_I64(offer(&s, &all, sent, 3000000), AS_OK);
        CHECK_I64(all.timing.status, 0);
        sent += (int)all.timing.accepted;
        if (sent > 0)
        {
            CHECK_I64(all.timing.last_due_ns, all.schedule.at_ns + (sent - 1) * 500000LL);
            CHECK(all.timing.last_at_ns >= all.timing.last_due_ns);
        }
    }
    CHECK(test_now_ns() >= all.schedule.at_ns + (COUNT - 1) * 500000LL);
    CHECK_I64(counted(&all.timing), COUNT - 1);
    CHECK(all.timing.max_late_ns >= all.timing.last_at_ns - all.timing.last_due_ns);
    read_all(&s);
    check_streams(&s, &all);
    close_streams(&s);
}

static void without_a_pace_all_at_once(world *w)
{
    streams s = open_streams(w);
    given all = every(INT64_MAX / 64); /* two centuries */
    all.schedule.pace = 0;
    CHECK_I64(offer(&s, &all, 0, TIMEOUT_NS), AS_OK);
    CHECK_I64(all.timing.accepted, COUNT);
    CHECK_I64(counted(&all.timing), 0);
    read_all(&s);
    check_streams(&s, &all);
    close_streams(&s);
}

static void any_times_saturate(world *w)
{
    streams s = open_streams(w);
    given all = every(INT64_MAX / 64);
    all.schedule.pace = 1e12;
    all.schedule.at_ns = test_now_ns();
    CHECK_I64(offer(&s, &all, 0, 1000000), AS_OK);
    CHECK_I64(all.timing.accepted, 1); /* the second is due in a very long time */
    all.times_ns[1] = INT64_MIN;
    all.schedule.time_ns = INT64_MAX;
    CHECK_I64(offer(&s, &all, 1, 0), AS_OK);
    CHECK_I64(all.timing.accepted, 1); /* long ago */
    close_streams(&s);
}

static void a_full_publication_holds_all_back(world *w)
{
    streams s = open_streams(w);
    static const uint8_t filling[1000];
    while (as_publication_offer(s.both[1], filling, sizeof(filling)) > 0)
    {
    }
    given all = every(0);
    all.targets[0] = 0;
    all.schedule.at_ns = test_now_ns();
    int sent = 0;
    do
    {
        /* Each call tries a message at least; one that the machine holds up for its timeout tries no more. */
        CHECK_I64(offer(&s, &all, sent, 1000000), AS_OK);
        sent += (int)all.timing.accepted;
    } while (0 == all.timing.status);
    CHECK_I64(sent, 3); /* the fourth is for the full one */
    CHECK_I64(all.timing.status, AS_BACK_PRESSURED);
    CHECK(all.timing.blocked_ns > 0);
    read_all(&s);
    AWAIT(w, as_publication_available_window(s.both[1]) > 10000);
    CHECK_I64(offer(&s, &all, 3, TIMEOUT_NS), AS_OK);
    CHECK_I64(all.timing.accepted, COUNT - 3);
    CHECK_I64(all.timing.status, 0);
    CHECK_I64(all.timing.blocked_ns, 0);
    CHECK_I64(counted(&all.timing), COUNT - 1);
    read_all(&s);
    check_streams(&s, &all);
    close_streams(&s);
}

static void what_is_refused(world *w)
{
    streams s = open_streams(w);
    given all = every(0);
    all.targets[COUNT - 1] = 2;
    CHECK_I64(offer(&s, &all, 0, 0), AS_E_USAGE);
    all.targets[COUNT - 1] = -1;
    CHECK_I64(offer(&s, &all, 0, 0), AS_E_USAGE);
    all.targets[COUNT - 1] = 0;
    all.schedule.pace = -1;
    CHECK_I64(offer(&s, &all, 0, 0), AS_E_USAGE);
    all.schedule.pace = 1e13;
    CHECK_I64(offer(&s, &all, 0, 0), AS_E_USAGE);
    all.schedule.pace = 1;
    all.schedule.at_ns = INT64_MAX - 1;
    CHECK_I64(offer(&s, &all, 0, 0), AS_E_USAGE);
    all.schedule.at_ns = test_now_ns();
    CHECK_I64(as_publications_offer_timed(s.both, 0, &all.messages, &all.schedule, 0, &all.timing), AS_E_USAGE);
    all.offsets[2] = 0; /* descends */
    CHECK_I64(offer(&s, &all, 0, TIMEOUT_NS), AS_E_USAGE);
    CHECK_I64(all.timing.accepted, 1);
    CHECK_I64(all.timing.status, AS_PUBLICATION_ERROR);
    read_all(&s);
    CHECK_I64(s.counts[0] + s.counts[1], 1);
    close_streams(&s);
}

int main(void)
{
    RUN_IN_WORLD(each_when_it_is_due);
    RUN_IN_WORLD(without_a_pace_all_at_once);
    RUN_IN_WORLD(any_times_saturate);
    RUN_IN_WORLD(a_full_publication_holds_all_back);
    RUN_IN_WORLD(what_is_refused);
    return 0;
}
