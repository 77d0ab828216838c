/* A send endpoint over a network in memory: which publication gets a control frame, and where datagrams are sent. Spec: 04
 * §3.6, §14. */
#include "driver/tx/publication.h"
#include "net/fake_net.h"

#define SECOND 1000000000LL

/* More publications than chains, so that chains have several links: each is found, and no other after it has gone. */
static void publications_are_found_until_they_go(void)
{
    static asi_sender_publication publications[3 * ASI_SEND_BUCKETS];
    static const int32_t COUNT = 3 * ASI_SEND_BUCKETS;
    asi_sender_endpoint endpoint = { .id = 1 };
    for (int32_t i = 0; i < COUNT; i++)
    {
        publications[i].stream_id = 1000 + i % 7;
        publications[i].session_id = -400 + i / 7 * 13;
        asi_sender_endpoint_add(&endpoint, &publications[i]);
    }
    for (int32_t i = 0; i < COUNT; i++)
    {
        CHECK(&publications[i] == asi_sender_endpoint_find(&endpoint, publications[i].stream_id, publications[i].session_id));
    }
    for (int32_t i = 0; i < COUNT; i += 2)
    {
        asi_sender_endpoint_remove(&endpoint, &publications[i]);
        asi_sender_endpoint_remove(&endpoint, &publications[i]); /* harmless */
    }
    for (int32_t i = 0; i < COUNT; i++)
    {
        const asi_sender_publication *expected = 0 == i % 2 ? NULL : &publications[i];
        CHECK(expected == asi_sender_endpoint_find(&endpoint, publications[i].stream_id, publications[i].session_id));
    }
    CHECK(NULL == asi_sender_endpoint_find(&endpoint, 1, 2));
}

static asi_udp_socket *open_at(fake_net *net, uint16_t port)
{
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", port), .connect = fake_address("127.0.0.1", 103) };
    asi_udp_socket *socket;
    CHECK_I64(fake_open(net, &params, &socket), AS_OK);
    socket->params.connect = 100 == port ? socket->params.connect : (asi_address){ .any = { .sa_family = AF_UNSPEC } };
    return socket;
}

/* To the socket's peer, to the endpoint's, to the requester of a response, or to none. */
static void where_datagrams_go(void)
{
    static const struct { bool is_connected; bool is_response; bool has_asked; int32_t sent; int arrived[3]; } ROWS[] = {
        { true, false, false, 2, { 0, 0, 2 } },
        { false, false, false, 2, { 2, 0, 0 } },
        { false, true, true, 2, { 0, 2, 0 } },
        { false, true, false, 0, { 0, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        fake_net net = { .next_port = 0 };
        const asi_udp_ops ops = fake_net_ops(&net);
        asi_udp_socket *arrived[3];
        asi_sender_endpoint endpoint = { .ops = &ops, .socket = open_at(&net, 100), .is_connected = ROWS[i].is_connected,
            .is_response = ROWS[i].is_response, .peer = fake_address("127.0.0.1", 101) };
        for (int k = 0; k < 3; k++)
        {
            arrived[k] = open_at(&net, (uint16_t)(101 + k));
        }
        asi_sender_publication publication = { .response_address = { .any = { .sa_family = AF_UNSPEC } } };
        if (ROWS[i].has_asked)
        {
            publication.response_address = fake_address("127.0.0.1", 102);
        }
        asi_outgoing datagrams[] = { { .bytes = "abc", .length = 3 }, { .bytes = "defgh", .length = 5 } };
        int32_t sent = -1;
        int64_t bytes = -1;
        asi_fan_out fan_out = { 0 };
        int64_t budget = 1000;
        CHECK_I64(asi_sender_endpoint_send(
            &endpoint, &publication, datagrams, 2, SECOND, &fan_out, &budget, &sent, &bytes), AS_OK);
        CHECK_I64(budget, 1000 - bytes);
        CHECK_I64(sent, ROWS[i].sent);
        CHECK_I64(bytes, ROWS[i].sent > 0 ? 8 : 0);
        for (int k = 0; k < 3; k++)
        {
            CHECK_I64(arrived[k]->count, ROWS[i].arrived[k]);
            fake_close(&net, arrived[k]);
        }
        fake_close(&net, endpoint.socket);
    }
}

int main(void)
{
    RUN(publications_are_found_until_they_go);
    RUN(where_datagrams_go);
    return 0;
}
