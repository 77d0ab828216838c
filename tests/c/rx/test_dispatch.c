/* The tables of interest against a plain model of them, by random operations (TEST_SEED repeats), and their limits. Spec: 04 §8.1,
 * §8.10. */
#include "driver/rx/dispatch.h"
#include "support.h"

#define ENDPOINTS 3
#define STREAMS 4
#define SESSIONS 5

typedef struct model
{
    bool all[ENDPOINTS][STREAMS];
    bool one[ENDPOINTS][STREAMS][SESSIONS];
    int state[ENDPOINTS][STREAMS][SESSIONS];
} model;

static asi_receive_endpoint endpoints[ENDPOINTS];
static asi_rx_image images[ENDPOINTS][STREAMS][SESSIONS];

static bool model_wants(const model *m, int e, int s, int k) { return m->all[e][s] || m->one[e][s][k]; }

static void model_tidy(model *m, int e, int s)
{
    for (int k = 0; k < SESSIONS; k++)
    {
        if (!model_wants(m, e, s, k))
        {
            m->state[e][s][k] = ASI_SESSION_NONE;
        }
    }
}

static void compare(const asi_dispatch *dispatch, const model *m)
{
    for (int e = 0; e < ENDPOINTS; e++)
    {
        int32_t streams = 0;
        for (int s = 0; s < STREAMS; s++)
        {
            bool any = m->all[e][s];
            int32_t active = 0;
            for (int k = 0; k < SESSIONS; k++)
            {
                const asi_session *session = asi_dispatch_find(dispatch, &endpoints[e], s, k);
                any = any || m->one[e][s][k];
                active += ASI_SESSION_ACTIVE == m->state[e][s][k] ? 1 : 0;
                CHECK_I64(asi_dispatch_is_interested(dispatch, &endpoints[e], s, k), model_wants(m, e, s, k));
                CHECK_I64(NULL == session ? ASI_SESSION_NONE : session->state, m->state[e][s][k]);
                CHECK((NULL != session) == (ASI_SESSION_NONE != m->state[e][s][k] || m->one[e][s][k]));
                CHECK(NULL == session ||
                    session->image == (ASI_SESSION_ACTIVE == m->state[e][s][k] ? &images[e][s][k] : NULL));
            }
            const asi_stream *stream = asi_dispatch_find_stream(dispatch, &endpoints[e], s);
            CHECK_I64(NULL != stream, any);
            CHECK_I64(NULL == stream ? 0 : stream->image_count, active);
            streams += any ? 1 : 0;
        }
        CHECK_I64(endpoints[e].stream_count, streams);
    }
}

static void random_operations(void)
{
    asi_dispatch dispatch;
    asi_rand rand = test_rand();
    static model m;
    memset(&m, 0, sizeof(m));
    memset(endpoints, 0, sizeof(endpoints));
    CHECK_I64(asi_dispatch_open(&dispatch, 16, 64), AS_OK);
    for (int round = 0; round < 20000; round++)
    {
        const int e = (int)test_rand_below(&rand, ENDPOINTS);
        const int s = (int)test_rand_below(&rand, STREAMS);
        const int k = (int)test_rand_below(&rand, SESSIONS);
        asi_session *session;
        switch (test_rand_below(&rand, 8))
        {
            case 0:
                CHECK_I64(asi_dispatch_add_stream(&dispatch, &endpoints[e], s), AS_OK);
                m.all[e][s] = true;
                break;
            case 1:
                asi_dispatch_remove_stream(&dispatch, &endpoints[e], s);
                m.all[e][s] = false;
                model_tidy(&m, e, s);
                break;
            case 2:
                CHECK_I64(asi_dispatch_add_session(&dispatch, &endpoints[e], s, k), AS_OK);
                m.one[e][s][k] = true;
                break;
            case 3:
                asi_dispatch_remove_session(&dispatch, &endpoints[e], s, k);
                m.one[e][s][k] = false;
                model_tidy(&m, e, s);
                break;
            case 4:
                if (0 == test_rand_below(&rand, 10))
                {
                    asi_dispatch_remove_endpoint(&dispatch, &endpoints[e]);
                    memset(m.all[e], 0, sizeof(m.all[e]));
                    memset(m.one[e], 0, sizeof(m.one[e]));
                    memset(m.state[e], 0, sizeof(m.state[e]));
                }
                break;
            default:
                session = asi_dispatch_get_or_add(&dispatch, &endpoints[e], s, k);
                if (NULL != session)
                {
                    int state = model_wants(&m, e, s, k) ? (int)test_rand_below(&rand, 5) : ASI_SESSION_NONE;
                    if (ASI_SESSION_ACTIVE == m.state[e][s][k] &&
                        (ASI_SESSION_PENDING_SETUP == state || ASI_SESSION_INIT_IN_PROGRESS == state))
                    {
                        state = ASI_SESSION_COOL_DOWN; /* a session with an image asks for no other */
                    }
                    m.state[e][s][k] = state;
                    asi_dispatch_set_state(&dispatch, session, (asi_session_state)state,
                        ASI_SESSION_ACTIVE == state ? &images[e][s][k] : NULL);
                }
                break;
        }
        compare(&dispatch, &m);
    }
    asi_dispatch_close(&dispatch);
}

static void pools_end(void)
{
    asi_dispatch dispatch;
    asi_receive_endpoint endpoint = { 0 };
    CHECK_I64(asi_dispatch_open(&dispatch, 4, 8), AS_OK);
    for (int32_t i = 0; i < 4; i++)
    {
        CHECK_I64(asi_dispatch_add_stream(&dispatch, &endpoint, i), AS_OK);
    }
    CHECK_I64(asi_dispatch_add_stream(&dispatch, &endpoint, 4), AS_E_STORAGE);
    CHECK_I64(asi_dispatch_add_stream(&dispatch, &endpoint, 3), AS_OK);
    for (int32_t i = 0; i < 8; i++)
    {
        asi_session *session = asi_dispatch_get_or_add(&dispatch, &endpoint, 0, i);
        CHECK(NULL != session);
        asi_dispatch_set_state(&dispatch, session, ASI_SESSION_PENDING_SETUP, NULL);
    }
    CHECK(NULL == asi_dispatch_get_or_add(&dispatch, &endpoint, 0, 8));
    CHECK_I64(asi_dispatch_add_session(&dispatch, &endpoint, 1, 0), AS_E_STORAGE);
    asi_dispatch_set_state(&dispatch, asi_dispatch_find(&dispatch, &endpoint, 0, 3), ASI_SESSION_NONE, NULL);
    CHECK(NULL != asi_dispatch_get_or_add(&dispatch, &endpoint, 0, 8));
    asi_dispatch_remove_stream(&dispatch, &endpoint, 2);
    CHECK_I64(asi_dispatch_add_stream(&dispatch, &endpoint, 4), AS_OK);
    asi_dispatch_close(&dispatch);
    asi_dispatch_close(&dispatch);
}

/* Full tables, so that buckets are shared: what one session of the number has is never another's, by stream or by endpoint. */
static void one_session_number_everywhere(void)
{
    for (int32_t round = 0; round < 64; round++)
    {
        asi_dispatch dispatch;
        CHECK_I64(asi_dispatch_open(&dispatch, 8, 8), AS_OK);
        for (int32_t i = 0; i < 8; i++)
        {
            asi_receive_endpoint *endpoint = &endpoints[i % 2];
            const int32_t stream_id = round * 4 + i / 2;
            CHECK_I64(asi_dispatch_add_stream(&dispatch, endpoint, stream_id), AS_OK);
            CHECK(NULL == asi_dispatch_find(&dispatch, endpoint, stream_id, 77));
            asi_session *session = asi_dispatch_get_or_add(&dispatch, endpoint, stream_id, 77);
            CHECK(NULL != session && session->stream->endpoint == endpoint);
            CHECK_I64(session->stream->stream_id, stream_id);
            asi_dispatch_set_state(&dispatch, session, ASI_SESSION_ACTIVE, &images[i % 2][i / 2][0]);
        }
        for (int32_t i = 0; i < 8; i++)
        {
            const int32_t stream_id = round * 4 + i / 2;
            CHECK(&images[i % 2][i / 2][0] == asi_dispatch_find(&dispatch, &endpoints[i % 2], stream_id, 77)->image);
            CHECK(NULL == asi_dispatch_find(&dispatch, &endpoints[i % 2], stream_id, 78));
            CHECK(NULL == asi_dispatch_find(&dispatch, &endpoints[2], stream_id, 77));
        }
        asi_dispatch_close(&dispatch);
    }
}

int main(void)
{
    RUN(one_session_number_everywhere);
    RUN(random_operations);
    RUN(pools_end);
    return 0;
}
