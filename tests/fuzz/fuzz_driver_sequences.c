/* Two whole drivers over a network in memory: what anybody may send them over time, among what their clients do. An input is a sequence
 * of steps, so that what one datagram leaves behind meets the next: frames of every kind with the sessions, streams, ports and
 * addresses that are in use, or nearly; what was seen on the way once more, as it was or changed, from anywhere to anywhere; any
 * bytes; publications, subscriptions and destinations that come and go; messages; loss, duplicates and disorder; and passing time.
 *
 * After each step the auditor compares the state of both with what must hold (driver_auditor.h); limits of settings are so low that
 * inputs reach them.
 *
 * Beside that an honest publisher sends numbered messages to an honest subscriber, over unicast and to a dynamic destination. Each of
 * them must arrive, once and in order, and neither stream may ever be disconnected. Who knows a session can forge what no Aeron
 * peer could tell, so no datagram made here carries an honest one: what would gets another.
 *
 * All runs in this thread, by a clock of the target's own: an input is the same run each time. Each has a world of its own. */
#include "driver_world.h"

#include "client/client.h"
#include "driver_auditor.h"
#include "sim_net.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define EPOCH_NS (1700000000 * SECOND)
#define NODES 2
#define HONEST 2
#define HONEST_STREAM 9001
#define STREAMS 4
#define SLOTS 8                /* of what the clients open and close */
#define SIGHTINGS 16
#define SIGHTING_CAPACITY 2048
#define STEPS_MAX 128
#define CYCLES_MAX 24
#define MESSAGE_MAX 1200
#define OFFERS_MAX 4           /* of an honest publisher in a turn */
#define CALM_TURNS 2000
#define MORE 10                /* messages at the end */
#define IMAGES_UNBEGUN_MAX 12
#define DESTINATIONS_MAX 16
#define FIXED "|init-term-id=7|term-id=7|term-offset=0|term-length=64k|session-id="

static const char *const PUBLISH_TO[SLOTS] = { "aeron:udp?endpoint=10.0.0.2:24001" FIXED "123456",
    "aeron:udp?control=10.0.0.1:24011|control-mode=dynamic|fc=min,t:1s" FIXED "123457",
    "aeron:udp?control=10.0.0.1:24012|control-mode=dynamic|fc=tagged,g:5/1|max-resend=2" FIXED "123458",
    "aeron:udp?endpoint=10.0.0.2:24002|channel-snd-ts-offset=0|eos=false" FIXED "123459", "aeron:udp?control-mode=manual" FIXED "123460",
    "aeron:udp?endpoint=224.20.30.39:24003|interface=10.0.0.1" FIXED "123461",
    "aeron:udp?control=10.0.0.1:24013|control-mode=response|response-correlation-id=prototype" FIXED "123462",
    "aeron:udp?endpoint=10.0.0.2:24001|linger=0" FIXED "123463" };
static const char *const SUBSCRIBE_TO[SLOTS] = { "aeron:udp?endpoint=10.0.0.2:24001",
    "aeron:udp?endpoint=10.0.0.2:24021|control=10.0.0.1:24011|control-mode=dynamic",
    "aeron:udp?endpoint=10.0.0.2:24022|control=10.0.0.1:24012|control-mode=dynamic|gtag=5|cc=cubic",
    "aeron:udp?endpoint=10.0.0.2:24002|reliable=false|tether=false|channel-rcv-ts-offset=reserved", "aeron:udp?control-mode=manual",
    "aeron:udp?endpoint=224.20.30.39:24003|interface=10.0.0.2", "aeron:udp?control-mode=response|control=10.0.0.1:24013",
    "aeron-spy:aeron:udp?endpoint=10.0.0.2:24001" };
static const char *const DESTINATIONS[] = { "aeron:udp?endpoint=10.0.0.2:24004", "aeron:udp?endpoint=10.0.0.2:24001",
    "aeron:udp?endpoint=10.0.0.2:24023|control=10.0.0.1:24011|control-mode=dynamic", "aeron:udp?endpoint=10.0.0.2:24002" };
static const char *const HONEST_TO[HONEST] = { "aeron:udp?endpoint=10.0.0.2:24101|term-length=64k",
    "aeron:udp?control=10.0.0.1:24102|control-mode=dynamic|fc=min|term-length=64k" };
static const char *const HONEST_FROM[HONEST] = { "aeron:udp?endpoint=10.0.0.2:24101",
    "aeron:udp?endpoint=10.0.0.2:24103|control=10.0.0.1:24102|control-mode=dynamic" };

typedef struct world world;

typedef struct node
{
    world *all;
    char dir[SCRATCH_CAPACITY];
    asi_clock clock;
    sim_host *host;
    as_driver *driver;
    driver_auditor auditor;
    as_client *client;
    as_publication *publications[SLOTS];
    as_subscription *subscriptions[SLOTS];
} node;

typedef struct honest
{
    as_publication *publication;
    as_subscription *subscription;
    int32_t session_id;
    int32_t stream_id;
    int64_t sent;
    int64_t taken;
} honest;

typedef struct sighting
{
    asi_address source;
    asi_address to;
    int32_t length;
    uint8_t bytes[SIGHTING_CAPACITY];
} sighting;

struct world
{
    int64_t now_ns;
    sim_net net;
    node nodes[NODES];
    honest honest[HONEST];
    sighting seen[SIGHTINGS];
    int64_t seen_count;
    uint8_t read;
};

/* -- world ------------------------------------------------------------------------------------------------------------------------ */

static int64_t nano_time(void *context) { return ((const node *)context)->all->now_ns; }
static int64_t epoch_ns(void *context) { return nano_time(context) + EPOCH_NS; }
static int64_t epoch_ms(void *context) { return epoch_ns(context) / MS; }

static void run_drivers(world *all)
{
    for (int32_t i = 0; i < NODES; i++)
    {
        as_driver_do_work(all->nodes[i].driver);
    }
}

static void spin(void *context)
{
    world *all = ((const node *)context)->all;
    all->now_ns += MS / 50;
    run_drivers(all);
}

static void on_client_error(void *context, as_result result, int32_t code, const char *text)
{
    (void)context;
    (void)result;
    (void)code;
    (void)text;
}

static void on_sent(void *context, const sim_sighting *one)
{
    world *all = context;
    driver_auditor_on_sent(&all->nodes[one->from->node].auditor, one->bytes, one->length);
    if (one->length <= SIGHTING_CAPACITY)
    {
        sighting *kept = &all->seen[all->seen_count++ % SIGHTINGS];
        *kept = (sighting){ .source = *one->source, .to = *one->to, .length = one->length };
        memcpy(kept->bytes, one->bytes, (size_t)one->length);
    }
}

static void open_node(world *all, int32_t index)
{
    node *opened = &all->nodes[index];
    *opened = (node){ .all = all, .host = sim_net_add_host(&all->net, index) };
    opened->clock = (asi_clock){ .nano_time = nano_time, .epoch_ms = epoch_ms, .epoch_ns = epoch_ns, .context = opened };
    scratch_create(opened->dir);
    asi_driver_settings settings = rig_settings(opened->dir);
    settings.term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.term_buffer_sparse_file = true;
    settings.image_term_length_max = 1024 * 1024;
    settings.images_unbegun_max = IMAGES_UNBEGUN_MAX;
    settings.destinations_max = DESTINATIONS_MAX;
    settings.destinations_per_address_max = DESTINATIONS_MAX / 4;
    settings.to_driver_buffer_length = 64 * 1024 + ASI_RING_TRAILER_LENGTH;
    settings.to_clients_buffer_length = 64 * 1024 + ASI_BROADCAST_TRAILER_LENGTH;
    settings.counters_values_buffer_length = 256 * 1024;
    settings.error_buffer_length = 64 * 1024;
    settings.loss_report_length = 64 * 1024;
    asi_driver_dependencies dependencies = { .clock = opened->clock, .ops = sim_net_ops(opened->host), .resolver = { .resolve = fuzz_resolve } };
    asi_rand_seed(&dependencies.rand, 4711 + (uint64_t)index);
    CHECK_I64(asi_driver_open_with(&settings, &dependencies, NULL, NULL, &opened->driver), AS_OK);
    driver_auditor_open(&opened->auditor, opened->driver);
}

static void open_client(node *of)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = of->dir;
    options.use_invoker = true;
    options.driver_invoker = spin;
    options.driver_invoker_context = of;
    options.on_error = on_client_error;
    CHECK_I64(asi_client_open_with_clock(&options, &of->clock, &of->client), AS_OK);
}

/* -- the honest ------------------------------------------------------------------------------------------------------------------- */

static int64_t message_length(int64_t number) { return 8 + number * 37 % (MESSAGE_MAX - 8); }

static void put_message(uint8_t *message, int64_t number)
{
    memset(message, (int)(number & 0xff), (size_t)message_length(number));
    memcpy(message, &number, sizeof(number));
}

static void on_honest_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    honest *reader = context;
    uint8_t wanted[MESSAGE_MAX];
    if (header->session_id == reader->session_id)
    {
        put_message(wanted, reader->taken);
        CHECK_I64(length, message_length(reader->taken));
        CHECK(0 == memcmp(data, wanted, (size_t)length));
        reader->taken++;
    }
}

/* Forged or not: each byte can be read. */
static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    for (int64_t i = 0; i < length; i++)
    {
        *(uint8_t *)context ^= data[i];
    }
}

static void turn(world *all, int64_t duration_ns, int32_t offers)
{
    all->now_ns += duration_ns;
    run_drivers(all);
    for (int32_t i = 0; i < NODES; i++)
    {
        as_client_invoke(all->nodes[i].client);
    }
    for (int32_t i = 0; i < HONEST; i++)
    {
        honest *one = &all->honest[i];
        uint8_t message[MESSAGE_MAX];
        CHECK(as_publication_is_connected(one->publication));
        for (int32_t k = 0; k < offers; k++)
        {
            put_message(message, one->sent);
            one->sent += as_publication_offer(one->publication, message, message_length(one->sent)) > 0 ? 1 : 0;
        }
        CHECK(as_subscription_poll(one->subscription, on_honest_message, one, 20) >= 0);
    }
}

static void audit(world *all)
{
    for (int32_t i = 0; i < NODES; i++)
    {
        driver_auditor_look(&all->nodes[i].auditor);
    }
}

static void open_honest(world *all, int32_t index)
{
    honest *opened = &all->honest[index];
    as_publication_constants constants;
    opened->stream_id = HONEST_STREAM + index;
    CHECK_I64(as_client_add_subscription(all->nodes[1].client, HONEST_FROM[index], opened->stream_id, &opened->subscription), AS_OK);
    CHECK_I64(
        as_client_add_exclusive_publication(all->nodes[0].client, HONEST_TO[index], opened->stream_id, &opened->publication), AS_OK);
    as_publication_get_constants(opened->publication, &constants);
    opened->session_id = constants.session_id;
    for (int32_t turns = 0; !as_publication_is_connected(opened->publication); turns++)
    {
        CHECK(turns < 1000);
        all->now_ns += 10 * MS;
        run_drivers(all);
        as_client_invoke(all->nodes[0].client);
        as_client_invoke(all->nodes[1].client);
    }
}

/* With a network that works again more can be sent, and all of it arrives. */
static void deliver_the_rest(world *all)
{
    all->net.faults = (sim_faults){ 0 };
    for (int32_t i = 0; i < HONEST; i++)
    {
        const honest *one = &all->honest[i];
        const int64_t enough = one->sent + MORE;
        for (int32_t turns = 0; one->sent < enough || one->taken != one->sent; turns++)
        {
            CHECK(turns < CALM_TURNS);
            turn(all, 5 * MS, one->sent < enough ? 1 : 0);
            audit(all); /* each turn: a limit may move back with the slowest receiver before the next look */
        }
    }
}

/* -- datagrams -------------------------------------------------------------------------------------------------------------------- */

static void disown(const world *all, uint8_t *bytes, int64_t length)
{
    const uint16_t type = length >= 8 ? asi_get_u16(bytes + 6) : UINT16_MAX;
    const int64_t at = ASI_FRAME_DATA == type || ASI_FRAME_PAD == type || ASI_FRAME_SETUP == type ? 12 : 8;
    for (int32_t i = 0; length >= at + 8 && i < HONEST; i++)
    {
        if (asi_get_i32(bytes + at) == all->honest[i].session_id)
        {
            asi_put_i32(bytes + at, 123456);
        }
    }
}

static void inject(world *all, const asi_address *source, const asi_address *to, uint8_t *bytes, int64_t length)
{
    disown(all, bytes, length);
    (void)sim_net_inject(&all->net, source, to, bytes, (int32_t)length);
}

static sim_endpoint choose_endpoint(const world *all, uint8_t choice)
{
    sim_endpoint endpoints[64];
    const int32_t count = sim_net_endpoints(&all->net, endpoints, 64);
    CHECK(count > 0);
    return endpoints[choice % count];
}

/* Whom a socket takes datagrams of, a stranger, or another socket. */
static asi_address choose_source(const world *all, uint8_t choice, const sim_endpoint *target)
{
    const bool has_peer = AF_UNSPEC != target->peer.any.sa_family && !asi_address_is_multicast(&target->peer);
    return has_peer && 0 == (choice & 1) ? target->peer :
        0 == (choice & 2)                ? sim_net_address(2 + (choice >> 6), (uint16_t)(9000 + (choice >> 2 & 15))) :
                                           choose_endpoint(all, choice >> 2).address;
}

static int32_t choose_session(const world *all, fuzz_input *input)
{
    const uint8_t choice = fuzz_u8(input);
    return choice < 128 ? 123456 + choice % SLOTS :
        choice < 160    ? 200000 + choice :
        choice < 192    ? all->honest[choice % HONEST].session_id + 1 :
        choice < 224    ? 0 : (int32_t)fuzz_number(input, 4);
}

static int32_t choose_stream(fuzz_input *input)
{
    const uint8_t choice = fuzz_u8(input);
    return choice < 160 ? 1001 + choice % STREAMS : choice < 208 ? HONEST_STREAM + choice % HONEST : choice < 240 ? 0 : (int32_t)fuzz_number(input, 4);
}

/* An offset in a term, a length in one, or anything. */
static int32_t choose_number(fuzz_input *input)
{
    const uint8_t choice = fuzz_u8(input);
    return choice < 96 ? 32 * choice :
        choice < 128   ? AS_TERM_MIN_LENGTH - 32 * (choice - 96) :
        choice < 160   ? AS_TERM_MIN_LENGTH / 2 + 32 * (choice - 144) :
        choice < 208   ? 32 * fuzz_u16(input) : (int32_t)fuzz_number(input, 4);
}

static int32_t choose_term(fuzz_input *input)
{
    const uint8_t choice = fuzz_u8(input);
    return choice < 224 ? 7 + choice % 4 - choice / 128 : (int32_t)fuzz_number(input, 4);
}

/* A heartbeat, or one to three frames back to back, or not quite; returns their bytes. */
static int32_t put_data(uint8_t *bytes, int32_t session_id, int32_t stream_id, uint8_t how, fuzz_input *input)
{
    const uint8_t flags = 0 == (how & 8) ? ASI_FLAG_UNFRAGMENTED : fuzz_u8(input);
    const int32_t term_id = choose_term(input);
    asi_frame_header frame = { .flags = flags, .session_id = session_id, .stream_id = stream_id, .term_id = term_id,
        .term_offset = choose_number(input) };
    int32_t length = 0;
    for (int32_t frames = how % 4; frames > 0; frames--)
    {
        const uint8_t blocks = fuzz_u8(input);
        frame.type = blocks < 200 ? ASI_FRAME_DATA : ASI_FRAME_PAD;
        frame.frame_length = 0 != (how & 4) && 1 == frames ? choose_number(input) : 32 * (1 + blocks % 8);
        memcpy(bytes + length, &frame, sizeof(frame));
        length += 32 * (1 + (ASI_FRAME_PAD == frame.type ? 0 : blocks % 8));
        frame.term_offset = (int32_t)((uint32_t)frame.term_offset + (uint32_t)frame.frame_length);
    }
    if (0 == length)
    {
        frame.type = ASI_FRAME_DATA;
        memcpy(bytes, &frame, sizeof(frame));
        length = sizeof(frame);
    }
    return length;
}

/* Reads one field after the other: within an initialiser compilers read in orders of their own. */
static int32_t put_frame(const world *all, uint8_t *bytes, uint8_t how, fuzz_input *input)
{
    const int32_t session_id = choose_session(all, input);
    const int32_t stream_id = choose_stream(input);
    const uint8_t flags = how & 0xf0;
    switch (how % 8)
    {
        case 0:
        {
            asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_SETUP, .flags = flags & 0xc0 },
                .session_id = session_id, .stream_id = stream_id, .initial_term_id = 7 };
            setup.active_term_id = choose_term(input);
            setup.term_offset = choose_number(input);
            setup.term_length = 0 == (how & 16) ? AS_TERM_MIN_LENGTH : choose_number(input);
            setup.mtu_length = 0 == (how & 32) ? 1408 : choose_number(input);
            memcpy(bytes, &setup, sizeof(setup));
            return sizeof(setup);
        }
        case 1:
        {
            const int32_t length = 0 == (how & 16) ? ASI_STATUS_LENGTH : ASI_STATUS_TAGGED_LENGTH;
            asi_status_frame status = { .prefix = { .frame_length = length, .type = ASI_FRAME_STATUS, .flags = flags & 0xc0 },
                .session_id = session_id, .stream_id = stream_id };
            status.consumption_term_id = choose_term(input);
            status.consumption_term_offset = choose_number(input);
            status.receiver_window = choose_number(input);
            status.receiver_id = fuzz_u8(input);
            status.group_tag = fuzz_u8(input) % 8;
            memcpy(bytes, &status, (size_t)length);
            return length;
        }
        case 2:
        {
            asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK }, .session_id = session_id,
                .stream_id = stream_id };
            nak.term_id = choose_term(input);
            nak.term_offset = choose_number(input);
            nak.length = choose_number(input);
            memcpy(bytes, &nak, sizeof(nak));
            return sizeof(nak);
        }
        case 3:
        {
            asi_rttm_frame rttm = { .prefix = { .frame_length = sizeof(rttm), .type = ASI_FRAME_RTTM, .flags = flags & 0x80 },
                .session_id = session_id, .stream_id = stream_id };
            rttm.echo_timestamp_ns = (int64_t)fuzz_number(input, 8);
            rttm.reception_delta_ns = (int64_t)fuzz_number(input, 8);
            rttm.receiver_id = fuzz_u8(input);
            memcpy(bytes, &rttm, sizeof(rttm));
            return sizeof(rttm);
        }
        case 4:
        {
            const int32_t text = fuzz_u8(input) % 64;
            asi_error_frame error = { .prefix = { .frame_length = (int32_t)sizeof(error) + text, .type = ASI_FRAME_ERROR, .flags = flags },
                .session_id = session_id, .stream_id = stream_id };
            error.receiver_id = fuzz_u8(input);
            error.group_tag = fuzz_u8(input) % 8;
            error.error_code = fuzz_u8(input);
            error.error_length = 0 == (how & 16) ? text : choose_number(input);
            memcpy(bytes, &error, sizeof(error));
            return (int32_t)sizeof(error) + text;
        }
        case 5:
        {
            const asi_response_setup_frame response = { .prefix = { .frame_length = sizeof(response), .type = ASI_FRAME_RESPONSE_SETUP },
                .session_id = session_id, .stream_id = stream_id, .response_session_id = choose_session(all, input) };
            memcpy(bytes, &response, sizeof(response));
            return sizeof(response);
        }
        default: return put_data(bytes, session_id, stream_id, how >> 3, input);
    }
}

static void step_frame(world *all, fuzz_input *input)
{
    uint8_t bytes[1024] __attribute__((aligned(8))) = { 0 };
    const sim_endpoint target = choose_endpoint(all, fuzz_u8(input));
    const asi_address source = choose_source(all, fuzz_u8(input), &target);
    const int32_t length = put_frame(all, bytes, fuzz_u8(input), input);
    inject(all, &source, &target.address, bytes, length);
}

/* What was sent lately, as it was or changed, from its sender or another, to whom it was for or another. */
static void step_again(world *all, fuzz_input *input)
{
    const uint8_t index = fuzz_u8(input);
    const uint8_t how = fuzz_u8(input);
    if (0 == all->seen_count)
    {
        return;
    }
    sighting copy = all->seen[index % (all->seen_count < SIGHTINGS ? all->seen_count : SIGHTINGS)];
    const sim_endpoint target = choose_endpoint(all, index >> 4);
    const asi_address source = 0 == (how & 1) ? copy.source : choose_source(all, how >> 3, &target);
    const asi_address to = 0 == (how & 2) ? copy.to : target.address;
    for (int32_t changes = how >> 2 & 3; changes > 0; changes--)
    {
        const uint8_t at = fuzz_u8(input);
        const uint64_t value = fuzz_number(input, 1 + at % 4);
        for (int32_t i = 0; i <= at % 4; i++)
        {
            copy.bytes[(at % 64 + i) % copy.length] = (uint8_t)(value >> (8 * i));
        }
    }
    if (0 != (how & 0x40))
    {
        copy.length = fuzz_u8(input) % (copy.length + 1);
    }
    if (0 == (how & 0x4f)) /* a duplicate: also of the honest */
    {
        (void)sim_net_inject(&all->net, &source, &to, copy.bytes, copy.length);
        return;
    }
    inject(all, &source, &to, copy.bytes, copy.length);
}

static void step_bytes(world *all, fuzz_input *input)
{
    const sim_endpoint target = choose_endpoint(all, fuzz_u8(input));
    const asi_address source = choose_source(all, fuzz_u8(input), &target);
    int64_t length;
    uint8_t *bytes = fuzz_take(input, fuzz_u8(input), &length);
    inject(all, &source, &target.address, bytes, length);
    free(bytes);
}

/* -- clients ---------------------------------------------------------------------------------------------------------------------- */

static void step_publication(world *all, fuzz_input *input)
{
    const uint8_t how = fuzz_u8(input);
    const int32_t at = how % SLOTS;
    node *of = &all->nodes[0 == (how & 0x80) ? 0 : 1];
    as_publication **publication = &of->publications[at];
    if (NULL == *publication)
    {
        (void)!(0 == (how & 8) ? as_client_add_exclusive_publication : as_client_add_publication)(
            of->client, PUBLISH_TO[at], 1001 + (how >> 4) % STREAMS, publication);
    }
    else if (0 == (how & 0x30))
    {
        (0 == (how & 8) ? as_publication_close : as_publication_revoke)(*publication);
        *publication = NULL;
    }
    else if (0 == (how & 0x10))
    {
        const char *destination = DESTINATIONS[how >> 2 & 3];
        (void)!(0 == (how & 0x40) ? as_publication_add_destination : as_publication_remove_destination)(*publication, destination);
    }
    else
    {
        const uint8_t message[4096] = { 0 };
        for (int32_t i = how >> 5 & 3; i >= 0; i--)
        {
            (void)!as_publication_offer(*publication, message, fuzz_u16(input) % (int64_t)sizeof(message));
        }
    }
}

static void step_subscription(world *all, fuzz_input *input)
{
    const uint8_t how = fuzz_u8(input);
    const int32_t at = how % SLOTS;
    node *of = &all->nodes[0 == (how & 0x80) ? 1 : 0];
    as_subscription **subscription = &of->subscriptions[at];
    if (NULL == *subscription)
    {
        (void)!as_client_add_subscription(of->client, SUBSCRIBE_TO[at], 1001 + (how >> 4) % STREAMS, subscription);
    }
    else if (0 == (how & 0x38))
    {
        as_subscription_close(*subscription);
        *subscription = NULL;
    }
    else if (8 == (how & 0x38))
    {
        as_image *image = as_subscription_image_at(*subscription, 0);
        if (NULL != image)
        {
            (void)!as_image_reject(image, "no");
            as_image_release(image);
        }
    }
    else if (16 == (how & 0x38))
    {
        const char *destination = DESTINATIONS[fuzz_u8(input) & 3];
        (void)!(0 == (how & 0x40) ? as_subscription_add_destination : as_subscription_remove_destination)(*subscription, destination);
    }
    else
    {
        (void)!as_subscription_poll(*subscription, on_message, &all->read, how);
    }
}

static void step_weather(world *all, fuzz_input *input)
{
    sim_faults *faults = &all->net.faults;
    faults->lost = 12 * fuzz_u8(input); /* up to 30 % */
    faults->duplicated = 12 * fuzz_u8(input);
    faults->reordered = 12 * fuzz_u8(input);
    faults->stale = 12 * fuzz_u8(input);
    faults->short_send = 12 * fuzz_u8(input);
    faults->jitter_ns = fuzz_u8(input) * MS / 10;
}

static void step(world *all, fuzz_input *input)
{
    switch (fuzz_u8(input) % 10)
    {
        case 0:
        case 1:
        case 2: step_frame(all, input); break;
        case 3:
        case 4: step_again(all, input); break;
        case 5: step_bytes(all, input); break;
        case 6: step_publication(all, input); break;
        case 7: step_subscription(all, input); break;
        case 8: step_weather(all, input); break;
        default:
        {
            const int64_t duration_ns = fuzz_u8(input) * MS;
            for (int32_t cycles = 1 + fuzz_u8(input) % CYCLES_MAX; cycles > 0; cycles--)
            {
                turn(all, duration_ns, 1);
                audit(all);
            }
            break;
        }
    }
    turn(all, MS, OFFERS_MAX);
    audit(all);
}

static void open_world(world *all)
{
    memset(all, 0, sizeof(*all));
    all->now_ns = SECOND;
    sim_net_init(&all->net, &all->now_ns, 4713);
    all->net.epoch_offset_ns = EPOCH_NS;
    all->net.spy = on_sent;
    all->net.spy_context = all;
    for (int32_t i = 0; i < NODES; i++)
    {
        open_node(all, i);
    }
    for (int32_t i = 0; i < NODES; i++)
    {
        open_client(&all->nodes[i]);
    }
    for (int32_t i = 0; i < HONEST; i++)
    {
        open_honest(all, i);
    }
}

static void close_world(world *all)
{
    all->net.spy = NULL; /* the auditors end before the drivers */
    for (int32_t i = 0; i < NODES; i++)
    {
        fuzz_check_logs(all->nodes[i].dir);
        as_client_close(all->nodes[i].client); /* with its publications and subscriptions */
    }
    for (int32_t i = 0; i < NODES; i++)
    {
        driver_auditor_close(&all->nodes[i].auditor);
        as_driver_close(all->nodes[i].driver);
        CHECK_I64(sim_net_open_sockets(&all->net, all->nodes[i].host), 0);
        scratch_delete(all->nodes[i].dir);
    }
    sim_net_close(&all->net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world all;
    fuzz_input input = { .at = data, .left = (int64_t)size };
    open_world(&all);
    for (int i = 0; i < STEPS_MAX && input.left > 0; i++)
    {
        step(&all, &input);
    }
    deliver_the_rest(&all);
    close_world(&all);
    return 0;
}
