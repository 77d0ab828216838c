/* Loss and windows in isolation: gap scan by table, NAK delays against the formula of Spec: 04 §9.3, cubic against the windows
 * that were captured (Spec: 04 §10.3), positions of status messages, filled gaps, and gaps and schedules passed between two
 * threads (thread sanitizer). */
#include <math.h>

#include "base/thread.h"
#include "rig.h"

static void gaps_by_table(void)
{
    enum { MAX_GAP = 8192 };
    static const struct
    {
        int32_t frames[6][2]; /* offset, frame length */
        int32_t offset;
        int32_t limit;
        int32_t reached;
        int32_t gap;
    } rows[] = {
        { { { 0 } }, 0, 0, 0, 0 },
        { { { 0 } }, 0, 1024, 0, 1024 },
        { { { 0, 100 } }, 0, 128, 128, 0 },
        { { { 0, 100 }, { 256, 100 } }, 0, 384, 128, 128 },
        { { { 0, 100 }, { 128, 32 }, { 256, 100 } }, 0, 384, 160, 96 },
        { { { 0, 100 } }, 0, 1024, 128, 896 },
        { { { 0, 100 }, { 128, -64 } }, 0, 1024, 128, 896 },       /* being written: not there yet */
        { { { 0, 4096 } }, 0, 32, 4096, 0 },                       /* padding reaches beyond the seen position */
        { { { 0, TERM + 32 } }, 0, 4096, TERM, 0 },                /* can't be: the term is over */
        { { { TERM - 32, 32 } }, TERM - 32, TERM, TERM, 0 },
        { { { 64, 32 } }, 64, 96, 96, 0 },
        { { { TERM - 64, 64 } }, TERM - 64, TERM, TERM, 0 },
        { { { TERM - 64, 96 } }, TERM - 64, TERM, TERM, 0 },
        { { { TERM - 96, 64 } }, TERM - 96, TERM, TERM - 32, 32 },
        { { { 0, 1 } }, 0, 64, 32, 32 },
        { { { TERM - 32, 32 } }, 0, TERM, 0, 8192 },               /* far ahead: at most the largest NAK of the gap */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t *term = calloc(1, TERM);
        CHECK(NULL != term);
        for (int k = 0; k < 6 && 0 != rows[i].frames[k][1]; k++)
        {
            asi_put_i32(term + rows[i].frames[k][0], rows[i].frames[k][1]);
        }
        int32_t gap;
        const asi_log log = { .terms = { term }, .term_length = TERM };
        CHECK_I64(asi_gap_scan_untrusted(&log, term, rows[i].offset, rows[i].limit, MAX_GAP, &gap), rows[i].reached);
        CHECK_I64(gap, rows[i].gap);
        free(term);
    }
}

static void multicast_delays(void)
{
    const asi_nak_delay delay = { .is_multicast = true, .max_backoff_ns = 10 * RIG_MS, .group_size = 10 };
    CHECK_I64(asi_nak_multicast_delay_ns(&delay, 0), 0);
    const int64_t median = asi_nak_multicast_delay_ns(&delay, 0.5);
    CHECK(median > 8000 * RIG_US && median < 8020 * RIG_US);
    CHECK(asi_nak_multicast_delay_ns(&delay, 0.999999) <= 10 * RIG_MS);
    asi_loss_detector detector = { .delay = delay };
    asi_rand_seed(&detector.rand, 4711);
    int64_t below = 0;
    for (int i = 0; i < 10000; i++)
    {
        const int64_t first = asi_nak_first_delay_ns(&detector);
        CHECK(first >= 0 && first <= 10 * RIG_MS);
        below += first < median ? 1 : 0;
    }
    CHECK(below > 4500 && below < 5500);
    detector.delay = (asi_nak_delay){ .first_ns = 5, .retry_ns = 500 };
    CHECK_I64(asi_nak_first_delay_ns(&detector), 5);
    CHECK_I64(asi_nak_retry_delay_ns(&detector), 500);
}

static void cubic_windows(void)
{
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const asi_congestion_params params = { .kind = ASI_CONGESTION_CUBIC, .initial_rtt_ns = 100 * RIG_US,
        .rtt_counter = &rtt_counter, .window_counter = &window_counter };
    asi_congestion congestion;
    bool force;
    asi_congestion_init(&congestion, &params, TERM, MTU, 128 * 1024, 0);
    CHECK_I64(congestion.max_cwnd, 23);
    CHECK_I64(asi_congestion_window(&congestion), 10 * MTU);
    CHECK_I64(rtt_counter, 0); /* until one is measured */
    static const struct
    {
        int64_t at_ms; /* when it was seen */
        int32_t window;
    } seen[] = { { 1, 26752 }, { 103, 28160 }, { 300, 29568 }, { 548, 30976 }, { 900, 32384 } };
    int64_t now_ns = 0;
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
    {
        int32_t window = 0;
        while (window != seen[i].window)
        {
            now_ns += RIG_MS;
            CHECK(now_ns <= (seen[i].at_ms + 5) * RIG_MS);
            window = asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, false, &force);
            CHECK(!force && window_counter == window);
        }
        CHECK(now_ns >= (seen[i].at_ms - 5) * RIG_MS);
    }
    /* A loss costs a fifth, down to one MTU. */
    CHECK_I64(asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, true, &force), 18 * MTU);
    CHECK(force);
    for (int i = 0; i < 30; i++)
    {
        asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, true, &force);
    }
    CHECK_I64(congestion.cwnd, 1);
    /* One MTU only: every consumption is reported at once. */
    CHECK_I64(asi_congestion_on_rebuild(&congestion, now_ns, 1408, 0, 100 * RIG_US, false, &force), MTU);
    CHECK(force);
    asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, false, &force);
    CHECK(!force);
}

/* After a loss the window grows back to where it was, fast at first and slowly there. */
static void cubic_grows_to_where_it_lost(void)
{
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const asi_congestion_params params = { .kind = ASI_CONGESTION_CUBIC, .initial_rtt_ns = 100 * RIG_US,
        .rtt_counter = &rtt_counter, .window_counter = &window_counter };
    asi_congestion congestion;
    bool force;
    asi_congestion_init(&congestion, &params, 16 * TERM, MTU, 128 * 1024, 0);
    CHECK_I64(congestion.max_cwnd, 93);
    for (int64_t loss = 0; loss < 3; loss++) /* 10, 8, 6, 4 */
    {
        asi_congestion_on_rebuild(&congestion, 0, 0, 0, 0, true, &force);
    }
    CHECK_I64(congestion.cwnd, 4);
    CHECK_I64(congestion.w_max, 6);
    const int64_t k_ns = (int64_t)(cbrt(6 * 0.2 / 0.4) * 1e9);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, k_ns, 0, 0, 0, false, &force), 6 * MTU);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, k_ns + RIG_SECOND, 0, 0, 0, false, &force), 6 * MTU);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, k_ns + 3 * RIG_SECOND, 0, 0, 0, false, &force), (6 + 10) * MTU);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, k_ns + 30 * RIG_SECOND, 0, 0, 0, false, &force), 93 * MTU);
    CHECK(!force);
    /* Within an RTT it stays the same. */
    asi_congestion_on_rebuild(&congestion, k_ns + 30 * RIG_SECOND, 0, 0, 0, true, &force);
    const int32_t window = asi_congestion_window(&congestion);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, k_ns + 30 * RIG_SECOND + 1, 0, 0, 0, false, &force), window);
}

/* In TCP mode, below where it lost, it grows no slower than TCP would: by an RTT of 1 ms some 0.33 MTUs in each. */
static void cubic_in_tcp_mode(void)
{
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const asi_congestion_params params = { .kind = ASI_CONGESTION_CUBIC, .is_tcp_mode = true, .initial_rtt_ns = RIG_MS,
        .rtt_counter = &rtt_counter, .window_counter = &window_counter };
    asi_congestion congestion;
    bool force;
    asi_congestion_init(&congestion, &params, 16 * TERM, MTU, 128 * 1024, 0);
    asi_congestion_on_rebuild(&congestion, 0, 0, 0, RIG_MS, true, &force);
    CHECK_I64(congestion.w_max, 10);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, 30 * RIG_MS, 0, 0, RIG_MS, false, &force), (8 + 10) * MTU);
    CHECK_I64(asi_congestion_on_rebuild(&congestion, 60 * RIG_MS, 0, 0, 0, false, &force), 9 * MTU); /* no RTT is known */
    CHECK_I64(asi_congestion_on_rebuild(&congestion, 300 * RIG_MS, 0, 0, RIG_MS, false, &force), 93 * MTU);
}

static void congestion_names(void)
{
    asi_congestion_kind kind;
    CHECK_I64(asi_congestion_parse(NULL, &kind), AS_OK);
    CHECK_I64(kind, ASI_CONGESTION_STATIC);
    CHECK_I64(asi_congestion_parse("cubic", &kind), AS_OK);
    CHECK_I64(kind, ASI_CONGESTION_CUBIC);
    CHECK_I64(asi_congestion_parse("bogus", &kind), AS_E_USAGE);
}

/* --- status messages of an image --- */

static int64_t told_position(const asi_rx_image *image)
{
    int64_t position;
    int64_t change;
    int32_t window;
    CHECK(asi_rx_image_read_sm(image, &position, &window, &change));
    return position;
}

/* A loss has a status message go out at once, wherever the subscribers' counters say that they are. */
static void status_messages_do_not_go_back(void)
{
    static int64_t rtt_counter;
    static int64_t window_counter;
    const rig_options options = { .congestion = { .kind = ASI_CONGESTION_CUBIC, .initial_rtt_ns = 100 * RIG_US,
        .rtt_counter = &rtt_counter, .window_counter = &window_counter } };
    rx_rig rig;
    rig_open(&rig, &options);
    asi_rx_image *image = rig_join(&rig);
    for (int i = 0; i < 8; i++)
    {
        peer_data(&rig, i * 1024, 992);
    }
    rig_cycles(&rig, 3);
    CHECK_I64(image->rebuild_position, 8192);
    CHECK_I64(told_position(image), 8192);
    const int64_t floor = image->floor_position;
    static const int64_t HOSTILE[] = { 8192 - 32, 0, -1, INT64_MIN, 8192 + 32, INT64_MAX };
    for (size_t i = 0; i < sizeof(HOSTILE) / sizeof(HOSTILE[0]); i++)
    {
        CHECK_I64(asi_rx_image_update_status(image, HOSTILE[i], true, rig.now_ns), 1);
        CHECK_I64(told_position(image), 8192);
        CHECK_I64(image->floor_position, floor);
    }
    rig_close(&rig);
}

/* Spec: 04 §10.1 - with a static window a quarter of it must have been consumed since the last one. */
static void when_a_status_message_is_due(void)
{
    rx_rig rig;
    rig_open(&rig, &(rig_options){ .receiver_window = 16384 });
    asi_rx_image *image = rig_join(&rig);
    image->rebuild_position = 16384;
    CHECK_I64(asi_rx_image_update_status(image, 4096, false, rig.now_ns), 0);
    CHECK_I64(asi_rx_image_update_status(image, 4096 + 32, false, rig.now_ns), 1);
    CHECK_I64(told_position(image), 4096 + 32);
    CHECK_I64(asi_rx_image_update_status(image, 2 * 4096 + 32, false, rig.now_ns), 0);
    CHECK_I64(asi_rx_image_update_status(image, 2 * 4096 + 64, false, rig.now_ns), 1);
    rig_close(&rig);
}

static asi_frame_header *slot_of(const asi_rx_image *image, int64_t offset)
{
    return (asi_frame_header *)(void *)(image->log.terms[0] + offset);
}

/* The conductor found a gap; data that arrived before the receiver got the command is not padded over. */
static void a_gap_is_filled_if_it_still_is_one(void)
{
    static const int64_t LATE[] = { 0, 32, 2048, 4096 - 32 };
    const asi_gap gap = { .term_id = INITIAL_TERM, .term_offset = 0, .length = 4096 };
    for (size_t i = 0; i < sizeof(LATE) / sizeof(LATE[0]); i++)
    {
        rx_rig rig;
        rig_open(&rig, &(rig_options){ 0 });
        asi_rx_image *image = rig_join(&rig);
        peer_data(&rig, 4096, 992);
        peer_data(&rig, LATE[i], 0); /* a header, so that only one slot shows it */
        rig_cycles(&rig, 2);
        CHECK(log_has(image, LATE[i], 0));
        asi_rx_image_fill_gap(image, &gap);
        CHECK(log_has(image, LATE[i], 0));
        CHECK_I64(slot_of(image, 0)->type, 0 == LATE[i] ? ASI_FRAME_DATA : 0);
        CHECK_I64(rig_counter(&rig, ASI_SYSTEM_LOSS_GAP_FILLS), 0);
        rig_close(&rig);
    }
}

/* A gap is cut to the window, which the user may set to any length; frames begin at multiples of 32. */
static void a_gap_ends_where_a_frame_can_begin(void)
{
    rx_rig rig;
    asi_gap gap;
    bool found_loss;
    rig_open(&rig, &(rig_options){ .receiver_window = 8192 + 8, .is_unreliable = true });
    asi_rx_image *image = rig_join(&rig);
    CHECK_I64(image->next_sm_window, 8192 + 8); /* announced as it was set */
    peer_data(&rig, 16384, 32);
    (void)asi_receiver_do_work(&rig.receiver);
    (void)asi_rx_image_rebuild(image, 0, rig.now_ns, &found_loss, &gap);
    CHECK_I64(gap.length, 8192);
    peer_data(&rig, 4096, 992);
    (void)asi_receiver_do_work(&rig.receiver);
    asi_rx_image_fill_gap(image, &gap);
    CHECK(log_has(image, 4096, 992));
    CHECK_I64(slot_of(image, 0)->frame_length, 0);
    rig_close(&rig);
}

static void a_gap_is_filled_with_padding(void)
{
    const asi_gap gap = { .term_id = INITIAL_TERM, .term_offset = 1024, .length = 2048 };
    rx_rig rig;
    rig_open(&rig, &(rig_options){ 0 });
    asi_rx_image *image = rig_join(&rig);
    peer_data(&rig, 0, 992);
    peer_data(&rig, 3072, 992);
    rig_cycles(&rig, 2);
    asi_rx_image_fill_gap(image, &gap);
    const asi_frame_header *padding = slot_of(image, 1024);
    CHECK_I64(padding->frame_length, 2048);
    CHECK_I64(padding->version, 0);
    CHECK_I64(padding->flags, ASI_FLAG_UNFRAGMENTED);
    CHECK_I64(padding->type, ASI_FRAME_PAD);
    CHECK_I64(padding->term_offset, 1024);
    CHECK_I64(padding->session_id, SESSION);
    CHECK_I64(padding->stream_id, STREAM);
    CHECK_I64(padding->term_id, INITIAL_TERM);
    CHECK_I64(padding->reserved_value, 0);
    CHECK(log_has(image, 0, 992) && log_has(image, 3072, 992));
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_LOSS_GAP_FILLS), 1);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, 4096);
    rig_close(&rig);
}

/* A resend that others asked for may begin in a filled gap and reach beyond it, up to the middle of the next padding. */
static void what_was_filled_stays(void)
{
    const asi_gap gaps[] = { { .term_id = INITIAL_TERM, .term_offset = 1024, .length = 1024 },
        { .term_id = INITIAL_TERM, .term_offset = 3072, .length = 2048 } };
    rx_rig rig;
    rig_open(&rig, &(rig_options){ 0 });
    asi_rx_image *image = rig_join(&rig);
    peer_data(&rig, 0, 992);
    peer_data(&rig, 2048, 992);
    peer_data(&rig, 5120, 992);
    rig_cycles(&rig, 2);
    asi_rx_image_fill_gap(image, &gaps[0]);
    asi_rx_image_fill_gap(image, &gaps[1]);
    peer_data(&rig, 1536, 4096 - 1536 - 32);
    rig_cycles(&rig, 2);
    CHECK_I64(slot_of(image, 1536)->frame_length, 0);
    CHECK(log_has(image, 2048, 992) && log_has(image, 5120, 992));
    CHECK_I64(slot_of(image, 3072)->frame_length, 2048);
    CHECK_I64(image->rebuild_position, 6144);
    peer_data(&rig, 6144, 992);
    rig_cycles(&rig, 2);
    CHECK(log_has(image, 6144, 992));
    rig_close(&rig);
}

/* --- what an image takes --- */

/* An image whose log has been filled more than a lap: every slot holds old bytes. */
static asi_rx_image *join_and_lap(rx_rig *rig, int64_t *position)
{
    asi_rx_image *image = rig_join(rig);
    for (*position = 0; *position < 4 * TERM + 8192; *position += 1024)
    {
        peer_data(rig, *position, 992);
        rig_cycle(rig);
    }
    CHECK_I64(image->rebuild_position, *position);
    return image;
}

static void check_zeros(const asi_rx_image *image, int64_t from, int64_t to)
{
    const uint8_t *term = image->log.terms[asi_log_index_of_position(from, image->log.position_bits)];
    for (int64_t at = from; at < to; at += AS_FRAME_ALIGNMENT)
    {
        CHECK_I64(asi_get_i32(term + at % TERM), 0);
    }
}

/* What a heartbeat, or data behind a gap, says to be missing is not made up from what lay there a lap before. */
static void nothing_of_the_last_lap_is_taken(void)
{
    for (int kind = 0; kind < 3; kind++)
    {
        rx_rig rig;
        int64_t position;
        rig_open(&rig, &(rig_options){ 0 });
        asi_rx_image *image = join_and_lap(&rig, &position);
        check_zeros(image, position, position + AS_FRAME_ALIGNMENT);
        if (0 == kind)
        {
            peer_heartbeat(&rig, position + 4096, 0);
        }
        else if (1 == kind)
        {
            peer_data(&rig, position + 4096, 992);
        }
        else
        {
            uint8_t bytes[64] __attribute__((aligned(8)));
            put_frame(bytes, position + 4096, 0); /* padding travels as a header */
            ((asi_frame_header *)(void *)bytes)->type = ASI_FRAME_PAD;
            ((asi_frame_header *)(void *)bytes)->frame_length = 2048;
            peer_send(&rig, bytes, AS_FRAME_HEADER_LENGTH);
        }
        rig_cycles(&rig, 3);
        const int64_t end = position + 4096 + (0 == kind ? 0 : 1 == kind ? 1024 : 2048);
        CHECK_I64(image->hwm, end);
        CHECK_I64(image->rebuild_position, position);
        CHECK_I64(rig.published.length, 4096);
        check_zeros(image, position, position + 4096);
        check_zeros(image, end, end + AS_FRAME_ALIGNMENT);
        for (int i = 0; i < 4; i++)
        {
            peer_data(&rig, position + i * 1024, 992);
        }
        rig_cycles(&rig, 3);
        CHECK_I64(image->rebuild_position, end);
        rig_close(&rig);
    }
}

/* A repeated frame with padding behind it, as another sender of the stream may pack them: the padding is dropped and requested
 * again, so there must be zeros up to where rcv-hwm rises. */
static void padding_behind_a_duplicate_raises_over_zeros(void)
{
    rx_rig rig;
    int64_t position;
    uint8_t bytes[128] __attribute__((aligned(8)));
    rig_open(&rig, &(rig_options){ 0 });
    const asi_rx_image *image = join_and_lap(&rig, &position);
    peer_data(&rig, position, 32);
    rig_cycles(&rig, 3);
    CHECK_I64(image->hwm, position + 64);
    put_frame(bytes, position, 32);
    put_frame(bytes + 64, position + 64, 0);
    ((asi_frame_header *)(void *)(bytes + 64))->type = ASI_FRAME_PAD;
    ((asi_frame_header *)(void *)(bytes + 64))->frame_length = 2048;
    peer_send(&rig, bytes, 64 + AS_FRAME_HEADER_LENGTH);
    rig_cycles(&rig, 3);
    CHECK_I64(image->hwm, position + 64 + 2048);
    check_zeros(image, position + 64, position + 64 + 2048 + AS_FRAME_ALIGNMENT);
    rig_close(&rig);
}

/* What a datagram says to bring ends with its term, at the latest; what says more raises nothing. */
static void padding_ends_with_its_term(void)
{
    static const struct { int64_t at; int32_t length; bool is_taken; } ROWS[] = {
        { TERM - 64, 64, true }, { TERM - 64, 96, false }, { 0, TERM, true }, { 0, TERM + 32, false }, { 64, INT32_MAX, false },
        { 64, 31, false }, { 64, -64, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rx_rig rig;
        uint8_t bytes[64] __attribute__((aligned(8)));
        rig_open(&rig, &(rig_options){ .is_manual_images = true });
        asi_setup_frame setup = setup_frame();
        setup.term_offset = (int32_t)ROWS[i].at;
        peer_send(&rig, &setup, sizeof(setup));
        rig_cycle(&rig);
        const asi_rx_image *image = rig_make_image(&rig, &rig.create);
        rig_cycles(&rig, 2);
        put_frame(bytes, ROWS[i].at, 0);
        ((asi_frame_header *)(void *)bytes)->type = ASI_FRAME_PAD;
        ((asi_frame_header *)(void *)bytes)->frame_length = ROWS[i].length;
        peer_send(&rig, bytes, AS_FRAME_HEADER_LENGTH);
        rig_cycles(&rig, 2);
        CHECK_I64(image->hwm, ROWS[i].at + (ROWS[i].is_taken ? ROWS[i].length : 0));
        CHECK_I64(image->rebuild_position, ROWS[i].at + (ROWS[i].is_taken ? ROWS[i].length : 0));
        CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), ROWS[i].is_taken ? 0 : 1);
        rig_close(&rig);
    }
}

/* --- two threads --- */

#define TRANSFERS 200000

typedef struct transfer
{
    asi_rx_image *image;
    int64_t at;
} transfer;

static int publish_values(void *context)
{
    transfer *h = context;
    if (h->at >= TRANSFERS)
    {
        return 0;
    }
    h->at++;
    const asi_gap gap = { .term_id = (int32_t)h->at, .term_offset = (int32_t)h->at * 3, .length = (int32_t)h->at * 7 };
    asi_rx_image_publish_gap(h->image, &gap);
    asi_rx_image_publish_sm(h->image, h->at * 1000, (int32_t)h->at);
    return 1;
}

static void values_that_belong_together_arrive_together(void)
{
    asi_rx_image *image = aligned_alloc(ASI_CACHE_LINE, sizeof(asi_rx_image));
    CHECK(NULL != image);
    memset(image, 0, sizeof(*image));
    transfer h = { .image = image };
    asi_agent agent;
    asi_idle idle;
    memset(&agent, 0, sizeof(agent));
    CHECK_I64(asi_idle_parse(&idle, "yield", NULL), AS_OK);
    CHECK_I64(asi_agent_start(&agent, "conductor", publish_values, &h, &idle, -1), AS_OK);
    int64_t last = 0;
    while (last < TRANSFERS)
    {
        asi_gap gap;
        int64_t position;
        int32_t window;
        int64_t change;
        if (asi_rx_image_poll_gap(image, &gap))
        {
            CHECK(gap.term_id > last);
            last = gap.term_id;
            CHECK_I64(gap.term_offset, (int32_t)last * 3);
            CHECK_I64(gap.length, (int32_t)last * 7);
        }
        if (asi_rx_image_read_sm(image, &position, &window, &change) && change > 0)
        {
            CHECK_I64(position, (int64_t)window * 1000);
            CHECK_I64(change, window);
        }
    }
    asi_agent_stop(&agent);
    free(image);
}

/* A gap before a frame far ahead is NAKed at the rate of repetitions, not with each datagram that arrives in order. */
static void a_frame_far_ahead_is_asked_for_at_its_pace(void)
{
    enum { DATAGRAMS = 200, STEP_US = 10 };
    rx_rig rig;
    rig_open(&rig, &(rig_options){ .receiver_window = 4096 });
    const asi_rx_image *image = rig_join(&rig);
    peer_data(&rig, 30720, 32);
    rig_cycles(&rig, 2);
    for (int i = 0; i < DATAGRAMS; i++)
    {
        peer_data(&rig, 64 * i, 32);
        rig.now_ns += STEP_US * RIG_US;
        rig_cycles(&rig, 2); /* 4 us: enough for the first delay of a gap that is new */
    }
    CHECK_I64(image->rebuild_position, 64 * DATAGRAMS);
    const int64_t naks = rig_counter(&rig, ASI_SYSTEM_NAKS_SENT);
    CHECK(naks > 0 && naks <= 2 + DATAGRAMS * (STEP_US + 4) / 100);
    rig_close(&rig);
}

static int64_t naks_in(rx_rig *rig, int64_t duration_ns)
{
    const int64_t before = rig_counter(rig, ASI_SYSTEM_NAKS_SENT);
    for (const int64_t end_ns = rig->now_ns + duration_ns; rig->now_ns < end_ns;)
    {
        rig->now_ns += 20 * RIG_US;
        rig_cycles(rig, 1);
    }
    return rig_counter(rig, ASI_SYSTEM_NAKS_SENT) - before;
}

/* An unanswered gap is NAKed with growing delays, and at once when data has arrived. */
static void a_gap_that_nobody_fills(void)
{
    rx_rig rig;
    rig_open(&rig, &(rig_options){ .receiver_window = 8192 });
    (void)rig_join(&rig);
    peer_be_heard(&rig);
    peer_data(&rig, 4096, 32);
    rig_cycles(&rig, 2);
    CHECK(naks_in(&rig, RIG_MS) >= 8);
    const int64_t naks = naks_in(&rig, 2000 * RIG_MS);
    CHECK(naks > 64 && naks < 110);
    peer_data(&rig, 0, 32);
    rig_cycles(&rig, 2);
    CHECK(naks_in(&rig, RIG_MS) >= 8);
    rig_close(&rig);
}

/* A gap of an unreliable stream is filled at once. Without storage for that it is not, and it must not cost more in each cycle. */
static void a_gap_that_cannot_be_filled(void)
{
    rx_rig rig;
    asi_gap published;
    bool found_loss;
    int32_t requests = 0;
    rig_open(&rig, &(rig_options){ .receiver_window = 8192, .is_unreliable = true });
    asi_rx_image *image = rig_join(&rig);
    peer_data(&rig, 4096, 32);
    (void)asi_receiver_do_work(&rig.receiver);
    for (int32_t i = 0; i < 10000; i++)
    {
        rig.now_ns += 20 * RIG_US;
        (void)asi_rx_image_rebuild(image, image->rebuild_position, rig.now_ns, &found_loss, &published);
        requests += published.length > 0 ? 1 : 0;
    }
    CHECK(requests > 64 && requests < 110);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, 4096 + 64);
    rig_close(&rig);
}

/* A gap is measured when data has arrived and when a NAK is due; otherwise a cycle reads its first word only. */
static void a_gap_is_measured_once(void)
{
    rx_rig rig;
    rig_open(&rig, &(rig_options){ .receiver_window = 8192 });
    const asi_rx_image *image = rig_join(&rig);
    uint8_t *term = image->log.terms[0];
    peer_data(&rig, 2048, 32);
    rig_cycles(&rig, 2);
    CHECK_I64(image->loss.active.length, 2048);
    asi_put_i32(term + 1024, 32); /* no datagram, so this is not read */
    rig_cycles(&rig, 2);
    CHECK_I64(image->loss.active.length, 2048);
    CHECK(naks_in(&rig, RIG_MS) > 0);
    CHECK_I64(image->loss.active.length, 1024);
    (void)naks_in(&rig, 1000 * RIG_MS); /* it is not due for long now */
    peer_data(&rig, 512, 32);
    rig_cycles(&rig, 1);
    CHECK_I64(image->loss.active.length, 512);
    (void)naks_in(&rig, 1000 * RIG_MS);
    asi_put_i32(term, 32); /* as if in the cycle in which the gap was measured */
    rig_cycles(&rig, 1);
    CHECK_I64(image->rebuild_position, 32);
    rig_close(&rig);
}

int main(void)
{
    RUN(gaps_by_table);
    RUN(a_gap_is_measured_once);
    RUN(a_gap_that_nobody_fills);
    RUN(a_gap_that_cannot_be_filled);
    RUN(a_frame_far_ahead_is_asked_for_at_its_pace);
    RUN(multicast_delays);
    RUN(cubic_windows);
    RUN(cubic_grows_to_where_it_lost);
    RUN(cubic_in_tcp_mode);
    RUN(congestion_names);
    RUN(status_messages_do_not_go_back);
    RUN(when_a_status_message_is_due);
    RUN(a_gap_is_filled_if_it_still_is_one);
    RUN(a_gap_ends_where_a_frame_can_begin);
    RUN(a_gap_is_filled_with_padding);
    RUN(what_was_filled_stays);
    RUN(nothing_of_the_last_lap_is_taken);
    RUN(padding_behind_a_duplicate_raises_over_zeros);
    RUN(padding_ends_with_its_term);
    RUN(values_that_belong_together_arrive_together);
    return 0;
}
