/* See auditor_bounds.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auditor.h"
#include "shm/error_log.h"
#include "shm/log_layout.h"
#include "sim_seeds.h"
#include "sim_trace.h"
#include "wire/frame.h"

#define MS 1000000LL
#define LOOK_NS (10 * MS)
#define LOOKS_OF_LASTING 5 /* what lasts, storage of a log and descriptors, is looked at so much more seldom: it costs system calls */
#define ANSWERS_NS (10 * MS)       /* in which a publication's resends are counted */
#define SPARE_DESCRIPTORS 8        /* the one that reads the folder, and a log that is being mapped */
#define SPARE_BYTES (256 * 1024)   /* of what goes to strangers; what the network still holds */
#define MTU_MAX 8192
#define STATUS_AND_NAK_LENGTH 128  /* a status message with a tag, a NAK, an error frame's share */
#define NAK_NS (100000)
#define TAKEN_MAX_OF_SOCKET 256
#define GOSSIP_DATAGRAMS (2048 + 2 * 256)
#define GOSSIP_LENGTH 1408
#define IMAGES_MAX 512
#define PAGES_AHEAD_LENGTH (320 * 1024) /* the driver makes pages before the data, in a log whose stream has begun */

void auditor_bounds_open(auditor *a, const auditor_limits *limits)
{
    a->bounds.is_on = true;
    a->bounds.limits = *limits;
    a->bounds.last_look_ns = *a->now_ns;
    a->bounds.descriptors = sim_open_descriptors();
}

void auditor_on_injected(auditor *a, int32_t length, int32_t sockets)
{
    a->bounds.hostile_bytes += (int64_t)length * (sockets > 1 ? sockets : 1);
}

void auditor_on_hostile_frame(auditor *a, int32_t session_id, int64_t ahead, bool is_heartbeat)
{
    auditor_hostile *session = &a->bounds.sessions[session_id & (SIM_HOSTILE_SESSIONS - 1)];
    session->datagrams += is_heartbeat ? 0 : 1;
    session->has_begun |= !is_heartbeat && 0 == ahead;
    session->ahead = ahead > session->ahead ? ahead : session->ahead;
}

static bool is_planted(const auditor_bounds *bounds, const asi_address *address)
{
    for (int32_t i = 0; i < bounds->planted_count; i++)
    {
        if (asi_address_equal(&bounds->planted[i], address))
        {
            return true;
        }
    }
    return false;
}

void auditor_on_planted(auditor *a, const asi_address *source)
{
    auditor_bounds *bounds = &a->bounds;
    if (!is_planted(bounds, source) && bounds->planted_count < SIM_PLANTED_MAX)
    {
        bounds->planted[bounds->planted_count++] = *source;
    }
}

/* -- what goes out ------------------------------------------------------------------------------------------------------ */

static bool is_stranger(const auditor_bounds *bounds, const asi_address *to)
{
    const uint32_t host = AF_INET == to->any.sa_family ? ntohl(to->v4.sin_addr.s_addr) : 0;
    return host >> 8 == 0x0A0000 && (int32_t)(host & 0xff) > bounds->limits.node_count;
}

/* Every receiver of a stream, and nobody else, is at one of its ports. */
static bool is_of_stream(const auditor *a, const sim_sighting *sighting)
{
    const auditor_flow *flow =
        auditor_find_flow(a, asi_get_i32(sighting->bytes + offsetof(asi_frame_header, stream_id)));
    const int32_t port = asi_address_port(sighting->to);
    return NULL != flow && port >= flow->first_port && port < flow->first_port + flow->port_count;
}

void auditor_on_sent(auditor *a, const sim_sighting *sighting)
{
    auditor_bounds *bounds = &a->bounds;
    if (!bounds->is_on)
    {
        return;
    }
    const uint16_t type = asi_get_u16(sighting->bytes + 6);
    const bool is_message = ASI_FRAME_PAD == type || (ASI_FRAME_DATA == type && 0 != asi_get_i32(sighting->bytes));
    const bool is_to_stranger = is_stranger(bounds, sighting->to);
    if (is_message && (is_to_stranger || !is_of_stream(a, sighting)))
    {
        char text[ASI_ADDRESS_TEXT_CAPACITY];
        asi_address_format(sighting->to, text);
        sim_fail("copied", "node %d sends messages of stream %d to %s, where nobody asked for them", sighting->from->node,
            asi_get_i32(sighting->bytes + offsetof(asi_frame_header, stream_id)), text);
    }
    bounds->stranger_bytes += is_to_stranger ? sighting->length : 0;
}

/* Datagrams of one publication, times those that get them. */
static int64_t resends_of(const auditor *a, const auditor_stream *stream)
{
    const int64_t resends = stream->is_unicast ? 2 : a->bounds.limits.max_resend;
    return (resends + 1) * stream->term_length;
}

/* As long as its driver may have a publication of it. */
static bool has_publication(const auditor *a, const auditor_stream *stream, int32_t driver)
{
    const auditor_times *times = &a->times;
    return stream->driver == driver && stream->is_network && (AUDITOR_OPEN == stream->end ||
        *a->now_ns - stream->ended_ns < 2 * (times->client_liveness_ns + times->linger_ns + times->unblock_ns));
}

void auditor_on_cycle(auditor *a, int32_t index, const sim_host *before)
{
    const auditor_bounds *bounds = &a->bounds;
    const auditor_driver *driver = &a->drivers[index];
    const sim_host *host = driver->host;
    const int64_t sent = host->sent_bytes - before->sent_bytes;
    const int64_t taken = host->taken_bytes - before->taken_bytes;
    const int64_t datagrams = host->taken_datagrams - before->taken_datagrams;
    if (!bounds->is_on || (sent < SPARE_BYTES && datagrams < TAKEN_MAX_OF_SOCKET))
    {
        return;
    }
    int64_t allowed = SPARE_BYTES + 2 * taken;
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        const auditor_stream *stream = &a->streams[i];
        const int64_t copies = stream->is_unicast ? 1 : bounds->limits.receivers_max + bounds->planted_count;
        allowed += has_publication(a, stream, index) ?
            copies * (ASI_UDP_MAX_BATCH * (int64_t)stream->mtu_length + resends_of(a, stream)) : 0;
    }
    allowed += 0 == bounds->limits.gossip_interval_ns ? 0 : GOSSIP_DATAGRAMS * GOSSIP_LENGTH;
    const int32_t sockets = sim_net_open_sockets(host->net, host) + 4; /* some may have been closed in this cycle */
    if (sent > allowed || datagrams > sockets * TAKEN_MAX_OF_SOCKET)
    {
        sim_fail("cycle", "driver %d took %" PRId64 " datagrams and sent %" PRId64 " bytes in one duty cycle, %" PRId64
            " are explained", index, datagrams, sent, allowed);
    }
}

static void check_resent(auditor *a, int32_t index, int64_t elapsed_ns)
{
    const asi_counters *counters = &a->drivers[index].counters;
    const int64_t total = asi_load_acquire_i64(asi_counter_addr(counters, ASI_SYSTEM_RETRANSMITTED_BYTES));
    const int64_t resent = total - a->bounds.resent[index];
    int64_t allowed = 0;
    a->bounds.resent[index] = total;
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        allowed += has_publication(a, &a->streams[i], index) ?
            resends_of(a, &a->streams[i]) * (elapsed_ns / ANSWERS_NS + 2) : 0;
    }
    if (resent > allowed)
    {
        sim_fail("resent", "driver %d resent %" PRId64 " bytes in %" PRId64 " us, at most %" PRId64 " were due", index, resent,
            elapsed_ns / 1000, allowed);
    }
}

static void check_amplified(auditor *a, int32_t images, int64_t elapsed_ns)
{
    auditor_bounds *bounds = &a->bounds;
    const auditor_limits *limits = &bounds->limits;
    const double seconds = (double)elapsed_ns / 1e9;
    double bytes_per_second = images * (STATUS_AND_NAK_LENGTH * 1e9 / (double)limits->status_message_ns +
        sizeof(asi_nak_frame) * 1e9 / NAK_NS + (0 == limits->rttm_ns ? 0 : sizeof(asi_rttm_frame) * 1e9 / (double)limits->rttm_ns));
    bytes_per_second += SIM_PLANTED_MAX * limits->flow_count * 20.0 * (sizeof(asi_setup_frame) + AS_FRAME_HEADER_LENGTH);
    bytes_per_second += 0 == limits->gossip_interval_ns ? 0 :
        limits->node_count * GOSSIP_DATAGRAMS * GOSSIP_LENGTH * 1e9 / (double)limits->gossip_interval_ns;
    bounds->allowed_bytes += (int64_t)(seconds * bytes_per_second);
    const int64_t allowed = SPARE_BYTES + bounds->allowed_bytes + 2 * bounds->hostile_bytes;
    if (bounds->stranger_bytes > allowed)
    {
        sim_fail("amplified", "%" PRId64 " bytes went to addresses of nobody, the adversary sent %" PRId64 ", %" PRId64
            " are explained", bounds->stranger_bytes, bounds->hostile_bytes, allowed);
    }
}

/* -- memory of the checks --------------------------------------------------------------------------------------------------- */

typedef struct kept_image
{
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
} kept_image;

/* Images of sessions that the adversary invented; there is none of what went to another group. */
static int32_t list_hostile(const auditor_driver *driver, kept_image *images)
{
    const asi_counters *counters = &driver->counters;
    int32_t count = 0;
    for (int32_t id = 0; id < counters->max_count && count < IMAGES_MAX; id++)
    {
        const asi_counter_metadata *metadata = &counters->metadata[id];
        const int32_t state = asi_counter_state(counters, id);
        if (ASI_COUNTER_UNUSED == state)
        {
            break;
        }
        const int32_t session_id = asi_get_i32(metadata->key + 8);
        if (ASI_COUNTER_ALLOCATED == state && ASI_COUNTER_TYPE_RECEIVER_POSITION == metadata->type_id &&
            sim_is_hostile_session(session_id))
        {
            if (SIM_STRAY_SESSION == session_id)
            {
                sim_fail("group", "%s has an image of stream %d, which was sent to another group", driver->dir,
                    asi_get_i32(metadata->key + 12));
            }
            images[count++] = (kept_image){ .registration_id = counters->values[id].registration_id, .session_id = session_id,
                .stream_id = asi_get_i32(metadata->key + 12) };
        }
    }
    return count;
}

static void check_unbegun(auditor *a, int32_t index, const kept_image *images, int32_t count)
{
    auditor_bounds *bounds = &a->bounds;
    int32_t unbegun = 0;
    for (int32_t i = 0; i < count; i++)
    {
        unbegun += bounds->sessions[images[i].session_id & (SIM_HOSTILE_SESSIONS - 1)].has_begun ? 0 : 1;
    }
    bounds->most_unbegun = unbegun > bounds->most_unbegun ? unbegun : bounds->most_unbegun;
    if (unbegun > bounds->limits.images_unbegun_max)
    {
        sim_fail("unbegun", "driver %d has %d images for which nothing came, %" PRId64 " are allowed", index, unbegun,
            bounds->limits.images_unbegun_max);
    }
}

static bool is_unreliable(const auditor_limits *limits, int32_t stream_id)
{
    for (int32_t i = 0; i < AUDITOR_UNRELIABLE_MAX; i++)
    {
        if (stream_id == limits->unreliable[i])
        {
            return true;
        }
    }
    return false;
}

static void check_storage(const auditor *a, int32_t index, const kept_image *images, int32_t count)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    for (int32_t i = (int32_t)(a->bounds.looks % LOOKS_OF_LASTING); i < count; i += LOOKS_OF_LASTING)
    {
        char path[AS_PATH_MAX + 64];
        struct stat status;
        snprintf(path, sizeof(path), "%s/images/%" PRId64 ".logbuffer", a->drivers[index].dir, images[i].registration_id);
        if (0 != stat(path, &status))
        {
            continue;
        }
        const auditor_hostile *session = &a->bounds.sessions[images[i].session_id & (SIM_HOSTILE_SESSIONS - 1)];
        const int64_t datagrams = session->datagrams;
        const int64_t bytes = (int64_t)status.st_blocks * 512;
        const int64_t filled = is_unreliable(&a->bounds.limits, images[i].stream_id) ?
            2 * (1 + datagrams) + session->ahead / a->bounds.limits.window_length : 0;
        const int64_t ahead = session->has_begun ? PAGES_AHEAD_LENGTH / page : 0;
        if (bytes > (2 + 2 * datagrams + filled + ahead) * page ||
            status.st_size > asi_log_file_length((int32_t)a->bounds.limits.image_term_length_max, (int32_t)page))
        {
            sim_fail("storage", "driver %d: the log of session %x, %" PRId64 " bytes long, takes %" PRId64 " for %" PRId64
                " datagrams", index, (unsigned)images[i].session_id, (int64_t)status.st_size, bytes, datagrams);
        }
    }
}

static void count_text(const asi_error_entry *entry, void *context) { *(int64_t *)context += entry->text_length + 24; }

static void check_errors(const auditor *a, int32_t index)
{
    const asi_cnc *cnc = &a->drivers[index].cnc;
    int64_t bytes = 0;
    asi_error_log_read_untrusted(cnc->error_log, cnc->lengths.error_log, 0, count_text, &bytes);
    if (bytes > cnc->lengths.error_log / 4 * 3)
    {
        sim_fail("errors", "driver %d: %" PRId64 " of %d bytes of the error log are taken", index, bytes, cnc->lengths.error_log);
    }
}

void auditor_look_at_bounds(auditor *a)
{
    static kept_image images[IMAGES_MAX];
    auditor_bounds *bounds = &a->bounds;
    const int64_t elapsed_ns = *a->now_ns - bounds->last_look_ns;
    if (!bounds->is_on || elapsed_ns < LOOK_NS)
    {
        return;
    }
    bounds->last_look_ns = *a->now_ns;
    bounds->looks++;
    int32_t total = 0;
    for (int32_t i = 0; i < a->driver_count; i++)
    {
        if (a->drivers[i].is_alive)
        {
            const int32_t count = list_hostile(&a->drivers[i], images);
            check_unbegun(a, i, images, count);
            check_storage(a, i, images, count);
            check_errors(a, i);
            check_resent(a, i, elapsed_ns);
            total += count;
        }
    }
    check_amplified(a, total + bounds->limits.node_count, elapsed_ns);
    const int32_t now = 0 == bounds->looks % LOOKS_OF_LASTING ? sim_open_descriptors() : 0;
    if (now > bounds->descriptors + SPARE_DESCRIPTORS)
    {
        sim_fail("descriptors", "%d descriptors are open, %d were", now, bounds->descriptors);
    }
}
