/* Goal: the event log records what happened, only the events that were enabled, in a file that rolls if so configured; hostile
 * bytes make odd lines and do no harm. Method: settings as text, an invoked driver with raw commands and frames, random bytes
 * with a printed seed. Spec: 05 §11, 11 §7. */
#include "driver/events.h"

#include "network_rig.h"

#define ALL_FRAMES ((uint64_t)1 << ASI_EVENT_FRAME_IN | (uint64_t)1 << ASI_EVENT_FRAME_OUT)

static char log_path[SCRATCH_CAPACITY + 16];

static uint64_t bit(asi_event event) { return (uint64_t)1 << event; }

static void events_are_asked_for_by_name_number_or_mask(void)
{
    const uint64_t all = asi_events_parse("S", "all");
    CHECK(0 == (all & 1) && bit(ASI_EVENT_CMD_OUT_ERROR) == (all & bit(ASI_EVENT_CMD_OUT_ERROR)));
    CHECK_I64(asi_events_parse("S", "ALL"), all);
    CHECK_I64(asi_events_parse("S", "admin"), all & ~ALL_FRAMES);
    CHECK_I64(asi_events_parse("S", ""), 0);
    CHECK_I64(asi_events_parse("S", "CMD_OUT_ERROR, 55,NAK_SENT"),
        bit(ASI_EVENT_CMD_OUT_ERROR) | bit(ASI_EVENT_RESEND) | bit(ASI_EVENT_NAK_SENT));
    CHECK_I64(asi_events_parse("S", "0x4"), bit(ASI_EVENT_FRAME_IN));
    CHECK_I64(asi_events_parse("S", "0x8"), bit(ASI_EVENT_FRAME_OUT));
    CHECK_I64(asi_events_parse("S", "0x10"), bit(ASI_EVENT_FRAME_OUT));
    CHECK_I64(asi_events_parse("S", "0x80"), bit(ASI_EVENT_UNTETHERED_SUBSCRIPTION_STATE_CHANGE));
    CHECK_I64(asi_events_parse("S", "0xFFFF"), all);
    const uint64_t commands = asi_events_parse("S", "0x1");
    CHECK(0 != (commands & bit(ASI_EVENT_CMD_IN_CLIENT_CLOSE)) && 0 == (commands & bit(ASI_EVENT_CMD_OUT_ERROR)));
    CHECK_I64(asi_events_parse("S", "9,63,-1,CMD_OUT,0xzz,error"), 0); /* warned of, each */
}

static void log_all(asi_driver_settings *settings)
{
    snprintf(settings->event_log, sizeof(settings->event_log), "all");
    snprintf(settings->event_log_disable, sizeof(settings->event_log_disable), "CMD_IN_KEEPALIVE_CLIENT,FRAME_OUT");
    snprintf(settings->event_log_filename, sizeof(settings->event_log_filename), "%s", log_path);
}

static void log_to_small_files(asi_driver_settings *settings)
{
    log_all(settings);
    settings->event_log_file_max_length = 200;
}

static char *read_log(const char *suffix)
{
    static char text[64 * 1024];
    char path[sizeof(log_path) + 16];
    snprintf(path, sizeof(path), "%s%s", log_path, suffix);
    FILE *file = fopen(path, "r");
    CHECK(NULL != file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void expect(const char *text, const char *part)
{
    if (NULL == strstr(text, part))
    {
        fprintf(stderr, "'%s' is not in:\n%s\n", part, text);
        exit(1);
    }
}

static void expect_none(const char *text, const char *part)
{
    if (NULL != strstr(text, part))
    {
        fprintf(stderr, "'%s' should not be in:\n%s\n", part, text);
        exit(1);
    }
}

static void what_a_driver_does_is_told(void)
{
    test_rig rig;
    rig_publication publication;
    peer subscriber;
    char channel[128];
    const char *dir = scratch_folder();
    snprintf(log_path, sizeof(log_path), "%s/events.log", dir);
    rig_open(&rig, log_all);
    peer_open(&subscriber);
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d", subscriber.port);
    rig_send_add(&rig, ASI_CMD_ADD_PUBLICATION, 3, 5, NETWORK_STREAM, channel);
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, 3);
    rig_expect_publication(&rig, false, &publication);
    rig_cycles(&rig, 3);
    peer_expect(&subscriber, ASI_FRAME_SETUP);
    const asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK },
        .session_id = publication.ready.session_id, .stream_id = NETWORK_STREAM, .term_id = 7, .length = 64 };
    peer_send(&subscriber, &nak, sizeof(nak));
    rig_pass(&rig, RIG_SECOND);
    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, 3, 6, 11, "aeron:nonsense\n");
    rig_cycles(&rig, 2);
    asi_log_close(&publication.log);
    peer_close(&subscriber);
    rig_close(&rig);

    const char *text = read_log("");
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "DRIVER: CMD_IN_ADD_PUBLICATION [%d/%d]: clientId=3 correlationId=5 streamId=%d channel=%s\n",
        (int)(sizeof(asi_cmd_publication) + strlen(channel)), (int)(sizeof(asi_cmd_publication) + strlen(channel)),
        NETWORK_STREAM, channel);
    expect(text, wanted);
    CHECK(0 == strncmp(text, "[1700000001.", 12)); /* the driver's clock */
    snprintf(wanted, sizeof(wanted), ": SEND_CHANNEL_CREATION [%d/%d]: %s\n", (int)strlen(channel), (int)strlen(channel), channel);
    expect(text, wanted);
    expect(text, "CMD_OUT_PUBLICATION_READY");
    expect(text, "CMD_OUT_COUNTER_READY");
    expect(text, "FRAME_IN [28/28]: address=127.0.0.1:");
    expect(text, "NAK_RECEIVED [28/28]: address=127.0.0.1:");
    expect(text, "streamId=1001 termId=7 termOffset=0 length=64\n");
    expect(text, "channel=aeron:nonsense?\n"); /* one line, whatever the channel holds */
    expect(text, "CMD_OUT_ERROR");
    expect(text, "REMOVE_PUBLICATION_CLEANUP");
    expect(text, "SEND_CHANNEL_CLOSE");
    expect_none(text, "FRAME_OUT");
    expect_none(text, "KEEPALIVE");
}

static void log_streams(asi_driver_settings *settings)
{
    network_settings(settings);
    log_all(settings);
    snprintf(settings->event_log, sizeof(settings->event_log), "admin");
}

/* A receiver of flow control comes, asks for data again and goes; a publication is revoked. */
static void what_becomes_of_streams_is_told(void)
{
    char channel[128];
    test_rig rig;
    rig_publication cast;
    rig_publication ipc;
    peer q;
    const char *dir = scratch_folder();
    snprintf(log_path, sizeof(log_path), "%s/events.log", dir);
    rig_open(&rig, log_streams);
    peer_open(&q);
    peer_close(&q); /* its port is the publication's now */
    const int port = q.port;
    peer_open(&q);
    snprintf(channel, sizeof(channel), "aeron:udp?control=localhost:%d|control-mode=dynamic|fc=min", port);
    rig_add_network_publication(&rig, channel, true, &cast);
    rig_cycles(&rig, 3);
    q.driver = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)port) };
    send_status(&rig, &q, &cast, 0, 32768, 0);
    CHECK(rig_offer(&cast, 100) > 0);
    CHECK(rig_offer(&cast, 100) > 0);
    rig_cycles(&rig, 3);
    send_nak(&rig, &q, &cast, 0, 0, 160);
    rig_run(&rig, 100);
    send_status(&rig, &q, &cast, 160, 32768, ASI_STATUS_FLAG_EOS);
    rig_run(&rig, 100);

    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 20, 9, "aeron:ipc");
    rig_expect_publication(&rig, true, &ipc);
    const asi_cmd_remove_publication revoke = { { 1, 30 }, 20, ASI_REMOVE_PUBLICATION_REVOKE };
    rig_send(&rig, ASI_CMD_REMOVE_PUBLICATION, &revoke, sizeof(revoke));
    rig_pass(&rig, 2 * RIG_SECOND);
    asi_log_close(&ipc.log);
    asi_log_close(&cast.log);
    peer_close(&q);
    rig_close(&rig);

    static const char *const PARTS[] = {
        ": FLOW_CONTROL_RECEIVER_ADDED", "streamId=1001 receiverId=4711 receiverCount=1\n",
        ": NAK_RECEIVED [28/28]", ": RESEND", "termOffset=0 length=", ": FLOW_CONTROL_RECEIVER_REMOVED",
        "receiverId=4711 receiverCount=0\n",
        ": CMD_IN_REMOVE_PUBLICATION", "registrationId=20 revoke=true\n", ": PUBLICATION_REVOKE", ": NAME_RESOLUTION_RESOLVE",
        "name=localhost isReResolution=false address=127.0.0.1:"
    };
    const char *text = read_log("");
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++)
    {
        expect(text, PARTS[i]);
    }
    expect_none(text, "FRAME_");
}

static void a_file_rolls(void)
{
    test_rig rig;
    const char *dir = scratch_folder();
    snprintf(log_path, sizeof(log_path), "%s/events.log", dir);
    rig_open(&rig, log_to_small_files);
    for (int i = 0; i < 6; i++)
    {
        rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, 3, 10 + i, 1, "aeron:ipc");
        rig_cycles(&rig, 2);
    }
    rig_close(&rig);
    const char *const suffixes[] = { "", ".1", ".2" };
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
    {
        const char *text = read_log(suffixes[i]);
        CHECK(strlen(text) >= 200 && strlen(text) < 1000); /* ends with the line that reached the limit */
        CHECK('\n' == text[strlen(text) - 1]);
    }
}

static void an_unwritable_file_is_refused(void)
{
    asi_events *events = NULL;
    asi_driver_settings settings;
    asi_driver_settings_init(&settings);
    CHECK_I64(asi_events_open(&settings, asi_clock_system(), &events), AS_OK);
    CHECK(NULL == events && !asi_events_has(events, ASI_EVENT_FRAME_IN));
    asi_events_log(events, ASI_EVENT_RESEND, "nobody listens"); /* harmless */
    asi_events_on_response(events, ASI_RSP_ERROR, "", 0);
    asi_events_close(events);
    snprintf(log_path, sizeof(log_path), "/proc/no-such-file");
    log_all(&settings);
    CHECK_I64(asi_events_open(&settings, asi_clock_system(), &events), AS_E_STORAGE);
    CHECK(NULL != strstr(as_error_text(), "aeron.event.log.filename"));
}

static void random_bytes_become_text(void)
{
    const unsigned seed = 4711;
    srand(seed);
    for (int round = 0; round < 20000; round++)
    {
        const int64_t length = rand() % 200;
        uint8_t *bytes = malloc((size_t)length + 1);
        CHECK(NULL != bytes);
        for (int64_t i = 0; i < length; i++)
        {
            bytes[i] = (uint8_t)(0 == rand() % 4 ? rand() : 0);
        }
        char to[512];
        memset(to, 1, sizeof(to));
        asi_event_format_untrusted(rand() % 70 - 3, bytes, length, to, sizeof(to));
        if (NULL == memchr(to, '\0', sizeof(to)))
        {
            fprintf(stderr, "seed %u, round %d: no terminator\n", seed, round);
            exit(1);
        }
        free(bytes);
    }
}

int main(void)
{
    RUN(events_are_asked_for_by_name_number_or_mask);
    RUN(what_a_driver_does_is_told);
    RUN(what_becomes_of_streams_is_told);
    RUN(a_file_rolls);
    RUN(an_unwritable_file_is_refused);
    RUN(random_bytes_become_text);
    return 0;
}
