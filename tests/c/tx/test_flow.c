/* Flow control strategies: the channel parameter's grammar, and the limits they give for status messages, silence, setup
 * requests and errors. Method: rows, and one step after the other under a clock of the test's own. Spec: 04 §6. */
#include "driver/tx/flow.h"

#include "check.h"

#define WINDOW 1000
#define SECOND 1000000000LL

typedef struct grammar_row
{
    const char *fc;
    bool is_group;
    bool is_valid;
    asi_flow_kind kind;
    int64_t group_tag;
    int64_t min_group_size;
    int64_t receiver_timeout_ns;
    int64_t rrwm;
} grammar_row;

static const grammar_row GRAMMAR[] = {
    { NULL, true, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 4 },
    { NULL, false, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 16 },
    { "max", true, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 4 },
    { "max,rrwm:2", true, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 2 },
    { "max,g:1", true, false, 0, 0, 0, 0, 0 },
    { "min", true, true, ASI_FLOW_MIN, -1, 0, 5 * SECOND, 4 },
    { "min,g:/3,t:2s", true, true, ASI_FLOW_MIN, -1, 3, 2 * SECOND, 4 },
    { "min,", true, true, ASI_FLOW_MIN, -1, 0, 5 * SECOND, 4 },
    { "min,,t:1s", true, false, 0, 0, 0, 0, 0 },
    { "min,g:", true, false, 0, 0, 0, 0, 0 },
    { "min,g:x", true, false, 0, 0, 0, 0, 0 },
    { "min,g:/-1", true, false, 0, 0, 0, 0, 0 },
    { "min,t:abc", true, false, 0, 0, 0, 0, 0 },
    { "min,rrwm:0", true, false, 0, 0, 0, 0, 0 },
    { "min,other:1", true, false, 0, 0, 0, 0, 0 },
    { "tagged,g:42/1", true, true, ASI_FLOW_TAGGED, 42, 1, 5 * SECOND, 4 },
    { "tagged,g:-7,t:50,rrwm:9", true, true, ASI_FLOW_TAGGED, -7, 0, 50, 9 },
    { "tagged,g:/2", true, true, ASI_FLOW_TAGGED, -1, 2, 5 * SECOND, 4 },
    { "", true, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 4 }, /* a parameter without value is none */
    { ",g:1", true, false, 0, 0, 0, 0, 0 },
    { "bogus", true, false, 0, 0, 0, 0, 0 },
    { "bogus", false, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 16 }, /* unicast ignores it,*/
    { "min,g:/3,rrwm:3", false, true, ASI_FLOW_MAX, -1, 0, 5 * SECOND, 3 }, /* but for rrwm */
    { "max,rrwm:x", false, false, 0, 0, 0, 0, 0 },
};

static void grammar(void)
{
    asi_driver_settings settings;
    asi_driver_settings_init(&settings);
    for (size_t i = 0; i < sizeof(GRAMMAR) / sizeof(GRAMMAR[0]); i++)
    {
        const grammar_row *row = &GRAMMAR[i];
        char channel[128];
        asi_uri uri;
        asi_flow_params params;
        snprintf(channel, sizeof(channel), "aeron:udp?endpoint=a:1%s%s", NULL == row->fc ? "" : "|fc=",
            NULL == row->fc ? "" : row->fc);
        CHECK_I64(asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel)), AS_OK);
        const as_result result = asi_flow_params_read(&settings, &uri, "aeron:udp", row->is_group, &params);
        if ((AS_OK == result) != row->is_valid)
        {
            fprintf(stderr, "fc=%s: %d\n", row->fc, result);
            CHECK(false);
        }
        if (row->is_valid)
        {
            CHECK_I64(params.kind, row->kind);
            CHECK_I64(params.group_tag, row->group_tag);
            CHECK_I64(params.min_group_size, row->min_group_size);
            CHECK_I64(params.receiver_timeout_ns, row->receiver_timeout_ns);
            CHECK_I64(params.rrwm, row->rrwm);
        }
    }
}

static void suppliers(void)
{
    asi_driver_settings settings;
    asi_uri uri;
    asi_flow_params params;
    asi_driver_settings_init(&settings);
    CHECK_I64(asi_uri_parse_untrusted(&uri, "aeron:udp?endpoint=a:1", 22), AS_OK);
    snprintf(settings.multicast_flow_control, sizeof(settings.multicast_flow_control),
        "%s", "aeron_min_flow_control_strategy_supplier");
    CHECK_I64(asi_flow_params_read(&settings, &uri, "aeron:udp", true, &params), AS_OK);
    CHECK_I64(params.kind, ASI_FLOW_MIN);
    snprintf(settings.multicast_flow_control, sizeof(settings.multicast_flow_control),
        "%s", "io.aeron.driver.TaggedMulticastFlowControlSupplier");
    CHECK_I64(asi_flow_params_read(&settings, &uri, "aeron:udp", true, &params), AS_OK);
    CHECK_I64(params.kind, ASI_FLOW_TAGGED);
    snprintf(settings.multicast_flow_control, sizeof(settings.multicast_flow_control), "%s", "nonsense");
    CHECK_I64(asi_flow_params_read(&settings, &uri, "aeron:udp", true, &params), AS_E_USAGE);
}

typedef struct stage
{
    asi_flow flow;
    int64_t limit;
    int64_t now_ns;
    int64_t count;
} stage;

static void open_stage(stage *s, asi_flow_kind kind, int64_t min_group_size)
{
    const asi_flow_params params = { .kind = kind, .group_tag = 5, .min_group_size = min_group_size,
        .receiver_timeout_ns = SECOND, .rrwm = 4 };
    *s = (stage){ .now_ns = SECOND };
    CHECK_I64(asi_flow_open(&s->flow, &params, &s->count), AS_OK);
}

static void status(stage *s, int64_t receiver_id, int64_t position, int64_t tag)
{
    const asi_flow_status message = { .receiver_id = receiver_id, .position = position, .window_length = WINDOW,
        .has_group_tag = 0 != tag, .group_tag = tag };
    s->limit = asi_flow_on_status(&s->flow, &message, s->limit, s->now_ns);
}

static void idle(stage *s, int64_t elapsed_ns)
{
    s->now_ns += elapsed_ns;
    s->limit = asi_flow_on_idle(&s->flow, s->limit, s->now_ns);
}

static void max_follows_the_foremost(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MAX, 0);
    CHECK(asi_flow_has_required_receivers(&s.flow));
    status(&s, 1, 0, 0);
    CHECK_I64(s.limit, 1000);
    status(&s, 2, 700, 0);
    CHECK_I64(s.limit, 1700);
    status(&s, 1, 100, 0);
    CHECK_I64(s.limit, 1700);
    idle(&s, 100 * SECOND);
    CHECK_I64(s.limit, 1700);
    asi_flow_close(&s.flow);
}

static void min_follows_the_slowest(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MIN, 0);
    status(&s, 1, 0, 0);
    CHECK_I64(s.limit, 1000);
    status(&s, 2, 500, 0);
    CHECK_I64(s.count, 2);
    CHECK_I64(s.limit, 1000);
    status(&s, 1, 300, 0);
    CHECK_I64(s.limit, 1300);
    idle(&s, SECOND);
    CHECK_I64(s.count, 2); /* exactly the timeout is not over it */
    status(&s, 2, 800, 0);
    idle(&s, 1);
    CHECK_I64(s.count, 1);
    CHECK_I64(s.limit, 1800);
    asi_flow_close(&s.flow);
}

static void a_receiver_too_far_behind_is_not_waited_for(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MIN, 0);
    status(&s, 1, 5000, 0);
    status(&s, 2, 3999, 0);
    CHECK_I64(s.count, 1);
    status(&s, 2, 4000, 0); /* one window behind the slowest's limit is the edge */
    CHECK_I64(s.count, 2);
    idle(&s, 0);
    CHECK_I64(s.limit, 5000); /* the limit goes back with the slowest */
    asi_flow_close(&s.flow);
}

static void a_group_needs_its_size(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MIN, 2);
    CHECK(!asi_flow_has_required_receivers(&s.flow));
    status(&s, 1, 0, 0);
    CHECK(!asi_flow_has_required_receivers(&s.flow));
    CHECK_I64(s.limit, 0);
    status(&s, 2, 0, 0);
    CHECK(asi_flow_has_required_receivers(&s.flow));
    CHECK_I64(s.limit, 1000);
    asi_flow_close(&s.flow);
}

static void tagged_waits_for_its_own_only(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_TAGGED, 0);
    status(&s, 1, 600, 0); /* no member of the group: like max */
    CHECK_I64(s.limit, 1600);
    CHECK_I64(s.count, 0);
    status(&s, 2, 700, 5);
    CHECK_I64(s.count, 1);
    CHECK_I64(s.limit, 1700);
    status(&s, 1, 5000, 0);
    status(&s, 3, 5000, 6);
    CHECK_I64(s.count, 1);
    CHECK_I64(s.limit, 1700);
    asi_flow_close(&s.flow);
}

static void an_error_or_the_end_of_a_receiver_frees_the_others(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_TAGGED, 0);
    status(&s, 1, 0, 5);
    status(&s, 2, 500, 5);
    asi_flow_on_error(&s.flow, 1, false, 5); /* without the tag it is no member */
    idle(&s, 0);
    CHECK_I64(s.count, 2);
    asi_flow_on_error(&s.flow, 1, true, 5);
    idle(&s, 0);
    CHECK_I64(s.count, 1);
    CHECK_I64(s.limit, 1500);
    const asi_flow_status ended = { .receiver_id = 2, .position = 500, .window_length = WINDOW, .is_end_of_stream = true,
        .has_group_tag = true, .group_tag = 5 };
    s.limit = asi_flow_on_status(&s.flow, &ended, s.limit, s.now_ns);
    idle(&s, 0);
    CHECK_I64(s.count, 0);
    s.limit = asi_flow_on_status(&s.flow, &ended, s.limit, s.now_ns);
    CHECK_I64(s.count, 0);
    asi_flow_close(&s.flow);
}

/* Spec: 04 §6.6. */
static void the_limit_is_held_for_a_receiver_that_joins(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MIN, 0);
    const asi_flow_status request = { .receiver_id = 9 };
    status(&s, 1, 0, 0);
    asi_flow_on_setup_request(&s.flow, &request);
    asi_flow_on_setup(&s.flow, s.limit, s.now_ns);
    status(&s, 1, 900, 0);
    CHECK_I64(s.limit, 1000);
    status(&s, 9, 800, 0);
    status(&s, 1, 950, 0);
    CHECK_I64(s.limit, 1800);
    asi_flow_on_setup(&s.flow, s.limit, s.now_ns); /* no request: nothing is held */
    status(&s, 9, 950, 0);
    CHECK_I64(s.limit, 1950);
    asi_flow_on_setup_request(&s.flow, &request);
    asi_flow_on_setup(&s.flow, s.limit, s.now_ns);
    status(&s, 1, 1500, 0);
    status(&s, 9, 1500, 0);
    CHECK_I64(s.limit, 1950);
    s.now_ns += SECOND / 2;
    status(&s, 1, 1500, 0);
    status(&s, 9, 1500, 0);
    s.now_ns += SECOND / 2 + 1;
    status(&s, 1, 1500, 0);
    CHECK_I64(s.limit, 2500); /* no receiver in time */
    asi_flow_close(&s.flow);
}

static void receivers_are_bounded(void)
{
    stage s;
    open_stage(&s, ASI_FLOW_MIN, 0);
    for (int64_t i = 0; i < 2 * ASI_FLOW_RECEIVERS_CAPACITY; i++)
    {
        status(&s, i, 0, 0);
    }
    CHECK_I64(s.count, ASI_FLOW_RECEIVERS_CAPACITY);
    asi_flow_close(&s.flow);
}

int main(void)
{
    RUN(grammar);
    RUN(suppliers);
    RUN(max_follows_the_foremost);
    RUN(min_follows_the_slowest);
    RUN(a_receiver_too_far_behind_is_not_waited_for);
    RUN(a_group_needs_its_size);
    RUN(tagged_waits_for_its_own_only);
    RUN(an_error_or_the_end_of_a_receiver_frees_the_others);
    RUN(the_limit_is_held_for_a_receiver_that_joins);
    RUN(receivers_are_bounded);
    return 0;
}
