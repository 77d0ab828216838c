/* Names of hosts: a table in the settings and what happens when a name moves, the gossip between drivers, and forged gossip.
 * Methods: network_rig.h with raw sockets under the test's clock; network_worlds.h for two drivers.
 * Spec: 05 §9, 11 N10. */
#include "driver/network_rig.h"
#include "driver/network_worlds.h"

static int resolver_port;

static void table_settings(asi_driver_settings *settings)
{
    network_settings(settings);
    snprintf(settings->name_resolver, sizeof(settings->name_resolver), "csv_table");
    snprintf(settings->name_resolver_args, sizeof(settings->name_resolver_args), "here,127.0.0.1,127.0.0.2|gone,a,b");
}

static int32_t table_counter(const test_rig *rig, const char *name)
{
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    for (int32_t i = 0; i < rig->counters.max_count; i++)
    {
        if (ASI_COUNTER_ALLOCATED == asi_counter_state(&rig->counters, i) && 2001 == rig->counters.metadata[i].type_id)
        {
            asi_counter_label(&rig->counters, i, label);
            if (NULL != strstr(label, name))
            {
                return i;
            }
        }
    }
    CHECK(false);
    return -1;
}

/* A silent peer's name is resolved again after five seconds; the endpoint connects to a new address. Spec: 04 §16. */
static void a_name_moves(void)
{
    test_rig rig;
    peer before;
    peer after;
    rig_publication publication;
    char channel[128];
    rig_open(&rig, table_settings);
    peer_open(&before);
    peer_open_at(&after, "127.0.0.2", before.port);
    const int32_t counter = table_counter(&rig, "name='here'");
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=here:%d|term-length=64k", before.port);
    rig_add_network_publication(&rig, channel, false, &publication);
    rig_cycles(&rig, 3);
    peer_expect(&before, ASI_FRAME_SETUP);
    asi_store_release_i64(asi_counter_addr(&rig.counters, counter), 1);
    rig_run(&rig, 4000);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_RESOLUTION_CHANGES), 0);
    rig_run(&rig, 2500);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_RESOLUTION_CHANGES), 1);
    peer_expect(&after, ASI_FRAME_SETUP);
    peer_drain(&before, 0);
    rig_run(&rig, 300);
    peer_expect_none(&before);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_ERRORS), 0);
    asi_log_close(&publication.log);
    peer_close(&before);
    peer_close(&after);
    rig_close(&rig);
}

/* A tag matches the channel of the same name, whatever address the name has now. */
static void a_tag_outlives_the_move_of_its_name(void)
{
    static const char *const CHANNELS[] = { "aeron:udp?endpoint=here:24779|tags=5|term-length=64k",
        "aeron:udp?control=here:24780|control-mode=dynamic|tags=6|term-length=64k" };
    for (size_t i = 0; i < sizeof(CHANNELS) / sizeof(CHANNELS[0]); i++)
    {
        test_rig rig;
        rig_publication first;
        rig_publication second;
        rig_open(&rig, table_settings);
        rig_add_network_publication(&rig, CHANNELS[i], true, &first);
        asi_store_release_i64(asi_counter_addr(&rig.counters, table_counter(&rig, "name='here'")), 1);
        rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 11, NETWORK_STREAM, CHANNELS[i]);
        rig_expect_publication(&rig, true, &second);
        CHECK_I64(second.ready.channel_status_id, first.ready.channel_status_id);
        rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 12, NETWORK_STREAM,
            0 == i ? "aeron:udp?endpoint=here:24781|tags=5" : "aeron:udp?control=here:24781|control-mode=dynamic|tags=6");
        rig_expect_error(&rig, 12, ASI_ERR_GENERIC);
        asi_log_close(&first.log);
        asi_log_close(&second.log);
        rig_close(&rig);
    }
}

static void send_destination(test_rig *rig, int32_t type_id, int64_t correlation_id, const char *channel)
{
    uint8_t message[256];
    const asi_cmd_destination command = { { 1, correlation_id }, 10, (int32_t)strlen(channel) };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), channel, (size_t)command.channel_length);
    rig_send(rig, type_id, message, (int64_t)sizeof(command) + command.channel_length);
    rig_expect_success(rig, correlation_id);
    rig_cycles(rig, 2);
}

/* A destination is removed by the name that it was added by: the name may have moved, or never had an address. */
static void destinations_are_removed_by_name(void)
{
    test_rig rig;
    rig_publication publication;
    rig_open(&rig, table_settings);
    rig_add_network_publication(&rig, "aeron:udp?control-mode=manual|term-length=64k", true, &publication);
    send_destination(&rig, ASI_CMD_ADD_DESTINATION, 20, "aeron:udp?endpoint=here:24782");
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 1);
    asi_store_release_i64(asi_counter_addr(&rig.counters, table_counter(&rig, "name='here'")), 1);
    send_destination(&rig, ASI_CMD_REMOVE_DESTINATION, 21, "aeron:udp?endpoint=here:24782");
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 0);
    asi_store_release_i64(asi_counter_addr(&rig.counters, table_counter(&rig, "name='gone'")), -1);
    send_destination(&rig, ASI_CMD_ADD_DESTINATION, 22, "aeron:udp?endpoint=gone:24783");
    send_destination(&rig, ASI_CMD_ADD_DESTINATION, 23, "aeron:udp?endpoint=gone:24784");
    send_destination(&rig, ASI_CMD_REMOVE_DESTINATION, 24, "aeron:udp?endpoint=gone:24784");
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 1);
    const asi_cmd_destination_by_id by_id = { { 1, 25 }, 10, 22 };
    rig_send(&rig, ASI_CMD_REMOVE_DESTINATION_BY_ID, &by_id, sizeof(by_id));
    rig_expect_success(&rig, 25);
    rig_cycles(&rig, 2);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 0);
    send_destination(&rig, ASI_CMD_ADD_DESTINATION, 26, "aeron:udp?endpoint=127.0.0.2:24785");
    send_destination(&rig, ASI_CMD_REMOVE_DESTINATION, 27, "aeron:udp?endpoint=here:24785"); /* another name of the address */
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 0);
    asi_log_close(&publication.log);
    rig_close(&rig);
}

static void a_name_is_made_to_fail(void)
{
    test_rig rig;
    rig_open(&rig, table_settings);
    asi_store_release_i64(asi_counter_addr(&rig.counters, table_counter(&rig, "name='gone'")), -1);
    rig_send_add(&rig, ASI_CMD_ADD_PUBLICATION, 1, 10, NETWORK_STREAM, "aeron:udp?endpoint=gone:24778");
    rig_expect_error(&rig, 10, ASI_ERR_UNKNOWN_HOST);
    CHECK(NULL != strstr((const char *)rig.last.bytes + sizeof(asi_rsp_error), "(forced)"));
    rig_close(&rig);
}

static void tables_that_can_not_be(void)
{
    static const char *const ARGS[] = { "a,b", "a,b,c,d", "a,b,c|x" };
    for (size_t i = 0; i < sizeof(ARGS) / sizeof(ARGS[0]); i++)
    {
        const char *dir = scratch_folder();
        asi_driver_settings settings = rig_settings(dir);
        snprintf(settings.name_resolver, sizeof(settings.name_resolver), "csv_table");
        snprintf(settings.name_resolver_args, sizeof(settings.name_resolver_args), "%s", ARGS[i]);
        asi_rand rand;
        asi_rand_seed(&rand, 1);
        as_driver *driver = NULL;
        CHECK_I64(asi_driver_open(&settings, asi_clock_system(), rand, NULL, NULL, &driver), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "aeron.name.resolver.init.args"));
    }
}

/* Two drivers find each other by a bootstrap address; a stream goes to a name that only gossip knows. */
static void gossip(void)
{
    worlds ws;
    char interface_a[64];
    char interface_b[64];
    char channel[128];
    snprintf(interface_a, sizeof(interface_a), "127.0.0.1:%d", free_port());
    snprintf(interface_b, sizeof(interface_b), "127.0.0.1:%d", free_port());
    const setting_pair of_a[] = { { "aeron.driver.resolver.name", "alpha" }, { "aeron.driver.resolver.interface", interface_a },
        { "aeron.name.resolver.supplier", "driver" }, { "aeron.driver.resolver.self.resolution.interval", "50ms" },
        { "aeron.driver.resolver.neighbor.resolution.interval", "50ms" }, { NULL, NULL } };
    const setting_pair of_b[] = { { "aeron.driver.resolver.name", "beta" }, { "aeron.driver.resolver.interface", interface_b },
        { "aeron.name.resolver.supplier", "driver" }, { "aeron.driver.resolver.self.resolution.interval", "50ms" },
        { "aeron.driver.resolver.neighbor.resolution.interval", "50ms" },
        { "aeron.driver.resolver.bootstrap.neighbor", interface_a }, { NULL, NULL } };
    worlds_open(&ws, "INVOKER", of_a, of_b);
    asi_cnc cnc;
    asi_counters counters;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, ws.a.dir), AS_OK);
    CHECK_I64(asi_counters_init(&counters, cnc.counters_metadata, cnc.lengths.counters_metadata, cnc.counters_values,
        cnc.lengths.counters_values), AS_OK);
    const int32_t cache = asi_counters_find(&counters, ASI_COUNTER_TYPE_RESOLVER_CACHE, NULL, NULL);
    const int32_t neighbors = asi_counters_find(&counters, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS, NULL, NULL);
    CHECK(cache >= 0 && neighbors >= 0);
    TURN_UNTIL(&ws, 1 == asi_load_acquire_i64(asi_counter_addr(&counters, cache)));
    CHECK_I64(asi_load_acquire_i64(asi_counter_addr(&counters, neighbors)), 1);
    const int port = free_port();
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=beta:%d", port);
    as_subscription *subscription = world_subscription(&ws.b, channel); /* its own name */
    as_publication *publication = world_publication(&ws.a, channel, false);
    run_stream(&ws, publication, subscription, 100);
    as_publication_close(publication);
    as_subscription_close(subscription);
    asi_cnc_close(&cnc);
    worlds_close(&ws);
}

static void gossip_settings(asi_driver_settings *settings)
{
    network_settings(settings);
    snprintf(settings->name_resolver, sizeof(settings->name_resolver), "driver");
    snprintf(settings->resolver_name, sizeof(settings->resolver_name), "us");
    snprintf(settings->resolver_interface, sizeof(settings->resolver_interface), "127.0.0.1:%d", resolver_port);
}

static const uint8_t GOOD_GOSSIP[] = { 32, 0, 0, 0, 0, 0, 7, 0, 1, 0x80, 0x39, 0x30, 0, 0, 0, 0, 127, 0, 0, 1, 4, 0, 't', 'h', 'e',
    'm', 0, 0, 0, 0, 0, 0 };

/* A neighbour stays while it sends its own entry, whatever others say of it; it is dropped ten seconds after the last one. */
static void a_neighbour_stays_while_it_speaks(void)
{
    test_rig rig;
    peer p;
    resolver_port = free_port();
    rig_open(&rig, gossip_settings);
    peer_open(&p);
    for (int seconds = 0; seconds < 14; seconds += 2)
    {
        peer_send_to(&p, GOOD_GOSSIP, sizeof(GOOD_GOSSIP), resolver_port);
        rig_run(&rig, 2000);
        CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS), 1);
    }
    uint8_t of_another[sizeof(GOOD_GOSSIP)];
    memcpy(of_another, GOOD_GOSSIP, sizeof(of_another));
    of_another[9] = 0; /* another driver's word: it refreshes the name, not the neighbour */
    rig_run(&rig, 6000);
    peer_send_to(&p, of_another, sizeof(of_another), resolver_port);
    rig_run(&rig, 1500);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS), 1);
    rig_run(&rig, 1500);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS), 0);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_CACHE), 1);
    peer_close(&p);
    rig_close(&rig);
}

/* Gossip from anybody: entries cut short, names too long, ages below zero, then anything at all. */
static void forged_gossip(void)
{
    test_rig rig;
    peer p;
    resolver_port = free_port();
    rig_open(&rig, gossip_settings);
    peer_open(&p);
    peer_send_to(&p, GOOD_GOSSIP, sizeof(GOOD_GOSSIP), resolver_port);
    rig_run(&rig, 30);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_CACHE), 1);
    CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS), 1);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_INVALID_PACKETS), 0);
    static const struct { int at; uint8_t value; } BAD[] = { { 0, 31 }, { 4, 1 }, { 6, 3 }, { 8, 3 }, { 15, 0x80 }, { 20, 11 },
        { 21, 0x80 }, { 21, 3 } };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        uint8_t bad[sizeof(GOOD_GOSSIP)];
        memcpy(bad, GOOD_GOSSIP, sizeof(GOOD_GOSSIP));
        bad[BAD[i].at] = BAD[i].value;
        peer_send_to(&p, bad, sizeof(bad), resolver_port);
        rig_run(&rig, 30);
        CHECK_I64(rig_system(&rig, ASI_SYSTEM_INVALID_PACKETS), (int64_t)i + 1);
    }
    /* Spec: 11 D14 - behind a good entry one whose name is empty, or longer than any: the good one is kept. */
    for (int i = 0; i < 2; i++)
    {
        uint8_t both[8 + 24 + 24] = { sizeof(both), 0, 0, 0, 0, 0, 7 };
        const int64_t invalid = rig_system(&rig, ASI_SYSTEM_INVALID_PACKETS);
        memcpy(both + 8, GOOD_GOSSIP + 8, 24);
        memcpy(both + 32, GOOD_GOSSIP + 8, 24);
        both[8 + 17] = (uint8_t)('0' + i); /* another name */
        both[32 + 12] = 0 == i ? 0 : 88;
        both[32 + 13] = 0 == i ? 0 : 2;
        peer_send_to(&p, both, sizeof(both), resolver_port);
        rig_run(&rig, 30);
        CHECK_I64(rig_system(&rig, ASI_SYSTEM_INVALID_PACKETS), invalid + 1);
        CHECK_I64(rig_counter_of_type(&rig, ASI_COUNTER_TYPE_RESOLVER_CACHE), 2 + i);
    }
    asi_rand rand;
    asi_rand_seed(&rand, 4711);
    for (int i = 0; i < 5000; i++)
    {
        uint8_t random[128];
        for (size_t at = 0; at < sizeof(random); at += 8)
        {
            asi_put_i64(random + at, (int64_t)asi_rand_u64(&rand));
        }
        const int32_t length = 8 + (int32_t)(asi_rand_u64(&rand) % (sizeof(random) - 8));
        const uint8_t prefix[] = { (uint8_t)length, 0, 0, 0, 0, 0, 7, 0, (uint8_t)(1 + asi_rand_u64(&rand) % 3) };
        memcpy(random, prefix, sizeof(prefix));
        peer_send_to(&p, random, (size_t)length, resolver_port);
        if (0 == i % 10)
        {
            rig_run(&rig, 11);
        }
    }
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_ERRORS) >= 0, true);
    peer_close(&p);
    rig_close(&rig);
}

int main(void)
{
    RUN(a_name_moves);
    RUN(a_tag_outlives_the_move_of_its_name);
    RUN(destinations_are_removed_by_name);
    RUN(a_name_is_made_to_fail);
    RUN(tables_that_can_not_be);
    RUN(gossip);
    RUN(a_neighbour_stays_while_it_speaks);
    RUN(forged_gossip);
    return 0;
}
