/* Sends listings of descriptors and answers queries. See listing.h. Spec: 08 §6.
 *
 * A listing sends its descriptors over as many cycles as the client's speed requires. It reads each descriptor from the catalog
 * when it sends it. After back-pressure it resumes where it stopped: at a recording id, or after a subscription id. Both ids
 * only increase. */
#define _GNU_SOURCE /* memmem */
#include "server/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/recording.h"
#include "server/reply.h"
#include "server/uses.h"

#define SCAN_LIMIT 64
#define DESCRIPTOR_PREFIX_LENGTH (ASI_CODEC_HEADER_LENGTH + 16)
#define DESCRIPTOR_BLOCK_LENGTH 80

static bool contains(const char *text, int64_t length, const char *fragment, int64_t fragment_length)
{
    return 0 == fragment_length ||
        (length >= fragment_length && NULL != memmem(text, (size_t)length, fragment, (size_t)fragment_length));
}

typedef enum asi_listing_kind
{
    ASI_LISTING_RECORDINGS,
    ASI_LISTING_SUBSCRIPTIONS
} asi_listing_kind;

typedef struct asi_listing
{
    asi_listing_kind kind;
    bool has_filter;          /* recordings: stream id and fragment; subscriptions: fragment only */
    bool has_stream_id;
    int32_t stream_id;
    int64_t correlation_id;
    int64_t cursor;           /* next recording id, or the last subscription id sent */
    int64_t to_skip;          /* number of subscriptions before the pseudo index */
    int64_t left;             /* number of descriptors still to send */
    int64_t fragment_length;
    char fragment[];
} asi_listing;

static void end(asi_control_session *session)
{
    free(session->listing);
    session->listing = NULL;
}

/* Sends the record as stored in the catalog, including padding, after the session's own ids. Spec: 06 §3.3. */
static as_result send_descriptor(
    asi_control_session *session, int64_t correlation_id, const asi_catalog_record *record)
{
    uint8_t prefix[DESCRIPTOR_PREFIX_LENGTH];
    asi_put_u16(prefix, DESCRIPTOR_BLOCK_LENGTH);
    asi_put_u16(prefix + 2, ASI_CODEC_RECORDING_DESCRIPTOR);
    asi_put_u16(prefix + 4, ASI_CODEC_SCHEMA_ID);
    asi_put_u16(prefix + 6, ASI_CODEC_SCHEMA_VERSION);
    asi_put_i64(prefix + 8, session->id);
    asi_put_i64(prefix + 16, correlation_id);
    const as_iovec parts[2] = {
        { .data = prefix, .length = sizeof(prefix) },
        { .data = record->descriptor, .length = record->descriptor_length },
    };
    return asi_control_try_send(session, parts, 2);
}

static as_result send_subscription(
    asi_control_session *session, int64_t correlation_id, const asi_recording_subscription *subscription)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR);
    event.control_session_id = session->id;
    event.correlation_id = correlation_id;
    event.subscription_id = subscription->id;
    event.stream_id = subscription->stream_id;
    event.stripped_channel = asi_codec_text(subscription->subscribed.text);
    uint8_t bytes[128 + ASI_ARCHIVE_CHANNEL_CAPACITY];
    int64_t length;
    const as_result encoded = asi_codec_event_encode(&event, bytes, sizeof(bytes), &length);
    const as_iovec part = { .data = bytes, .length = AS_OK == encoded ? length : 0 };
    return AS_OK == encoded ? asi_control_try_send(session, &part, 1) : encoded;
}

/* A descriptor that exceeds the response stream's message limit ends the listing with an error; otherwise the listing would
 * never end. */
static void fail(asi_control_session *session, int64_t id)
{
    char reason[512];
    snprintf(reason, sizeof(reason), "%s", as_error_text());
    const int64_t correlation_id = session->listing->correlation_id;
    end(session);
    asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC,
        "the descriptor of %lld does not fit the response stream (%s); use a larger term-length there", (long long)id, reason);
}

static int step_recordings(asi_control_session *session)
{
    asi_listing *listing = session->listing;
    const asi_catalog *catalog = session->archive->catalog;
    int64_t index = asi_catalog_index_from(catalog, listing->cursor);
    int sent_count = 0;
    for (int scanned = 0; scanned < SCAN_LIMIT && listing->left > 0; scanned++, index++)
    {
        if (index >= asi_catalog_count(catalog))
        {
            const int64_t correlation_id = listing->correlation_id;
            const int64_t next_id = listing->cursor;
            end(session);
            asi_control_respond(session->archive, session->id, correlation_id, ASI_CODEC_RECORDING_UNKNOWN, next_id, NULL);
            return 1;
        }
        asi_catalog_record record;
        asi_catalog_at(catalog, index, &record);
        const bool is_wanted = !listing->has_filter ||
            (record.stream_id == listing->stream_id && contains(record.original_channel.at, record.original_channel.length,
                listing->fragment, listing->fragment_length));
        if (is_wanted)
        {
            const as_result sent = send_descriptor(session, listing->correlation_id, &record);
            if (AS_OK != sent)
            {
                if (AS_E_USAGE == sent)
                {
                    fail(session, record.recording_id);
                }
                return sent_count;
            }
            listing->left--;
            sent_count++;
        }
        listing->cursor = record.recording_id + 1;
    }
    if (0 == listing->left)
    {
        end(session);
    }
    return 1;
}

static int step_subscriptions(asi_control_session *session)
{
    asi_listing *listing = session->listing;
    for (const asi_recording_subscription *at = session->archive->recordings->subscriptions; NULL != at && listing->left > 0; at = at->next)
    {
        if (!at->is_listed || at->id <= listing->cursor)
        {
            continue;
        }
        if (listing->to_skip > 0)
        {
            listing->to_skip--;
        }
        else if ((!listing->has_stream_id || at->stream_id == listing->stream_id) &&
            contains(at->subscribed.text, (int64_t)strlen(at->subscribed.text), listing->fragment, listing->fragment_length))
        {
            const as_result sent = send_subscription(session, listing->correlation_id, at);
            if (AS_OK != sent)
            {
                if (AS_E_USAGE == sent)
                {
                    fail(session, at->id);
                }
                return 0;
            }
            listing->left--;
        }
        listing->cursor = at->id;
    }
    const int64_t correlation_id = listing->correlation_id;
    const bool is_complete = 0 == listing->left;
    end(session);
    if (!is_complete)
    {
        asi_control_respond(session->archive, session->id, correlation_id, ASI_CODEC_SUBSCRIPTION_UNKNOWN, 0, NULL);
    }
    return 1;
}

static int step(asi_control_session *session)
{
    return ASI_LISTING_RECORDINGS == session->listing->kind ? step_recordings(session) : step_subscriptions(session);
}

static bool refuse_second(asi_control_session *session, int64_t correlation_id)
{
    if (NULL == session->listing)
    {
        return false;
    }
    asi_control_error(session, correlation_id, ASI_CODEC_E_ACTIVE_LISTING, "active listing already in progress");
    return true;
}

/* Starts the listing and executes its first step at once. */
static void start(asi_control_session *session, const asi_listing *wanted, const char *fragment)
{
    asi_listing *listing = malloc(sizeof(*listing) + (size_t)wanted->fragment_length);
    if (NULL == listing)
    {
        asi_control_error(session, wanted->correlation_id, ASI_CODEC_E_GENERIC, "no memory for the listing");
        return;
    }
    *listing = *wanted;
    if (wanted->fragment_length > 0)
    {
        memcpy(listing->fragment, fragment, (size_t)wanted->fragment_length);
    }
    session->listing = listing;
    session->step_listing = step;
    step(session);
}

static int64_t listed_count(const as_archive *archive)
{
    int64_t count = 0;
    for (const asi_recording_subscription *at = archive->recordings->subscriptions; NULL != at; at = at->next)
    {
        count += at->is_listed ? 1 : 0;
    }
    return count;
}

void asi_listing_begin(asi_control_session *session, const asi_codec_request *request)
{
    if (refuse_second(session, request->correlation_id))
    {
        return;
    }
    const bool of_subscriptions = ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS == request->template_id;
    if (of_subscriptions && (request->record_count <= 0 || request->pseudo_index < 0 ||
        request->pseudo_index >= listed_count(session->archive)))
    {
        asi_control_respond(
            session->archive, session->id, request->correlation_id, ASI_CODEC_SUBSCRIPTION_UNKNOWN, 0, NULL);
        return;
    }
    if (!of_subscriptions && request->record_count <= 0)
    {
        /* Departure from Spec: 08 §6 - stock does not answer a count of 0 and lists forever for a negative one; here the listing
         * ends. */
        asi_control_respond(session->archive, session->id, request->correlation_id, ASI_CODEC_RECORDING_UNKNOWN,
            request->recording_id, NULL);
        return;
    }
    const asi_listing wanted = {
        .kind = of_subscriptions ? ASI_LISTING_SUBSCRIPTIONS : ASI_LISTING_RECORDINGS,
        .has_filter = ASI_CODEC_LIST_RECORDINGS != request->template_id,
        .has_stream_id = 1 == request->apply_stream_id,
        .stream_id = request->stream_id,
        .correlation_id = request->correlation_id,
        .cursor = of_subscriptions ? AS_NULL_VALUE : request->recording_id,
        .to_skip = of_subscriptions ? request->pseudo_index : 0,
        .left = request->record_count,
        .fragment_length = request->channel.length,
    };
    start(session, &wanted, request->channel.data);
}

/* -- queries ----------------------------------------------------------------------------------------------------------------- */

void asi_query_list_recording(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (refuse_second(session, request->correlation_id))
    {
        return;
    }
    if (!asi_catalog_find(session->archive->catalog, request->recording_id, &record))
    {
        asi_control_respond(session->archive, session->id, request->correlation_id, ASI_CODEC_RECORDING_UNKNOWN,
            request->recording_id, NULL);
        return;
    }
    const asi_listing wanted = {
        .kind = ASI_LISTING_RECORDINGS,
        .correlation_id = request->correlation_id,
        .cursor = request->recording_id,
        .left = 1,
    };
    start(session, &wanted, NULL);
}

void asi_query_find_last(asi_control_session *session, const asi_codec_request *request)
{
    const asi_catalog *catalog = session->archive->catalog;
    if (request->recording_id < 0)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNKNOWN_RECORDING, "minRecordingId=%lld < 0",
            (long long)request->recording_id);
        return;
    }
    const int64_t from = asi_catalog_index_from(catalog, request->recording_id);
    int64_t index = asi_catalog_count(catalog);
    while ((index = asi_catalog_last_of(catalog, from, index, request->session_id, request->stream_id)) >= 0)
    {
        asi_catalog_record record;
        asi_catalog_at(catalog, index, &record);
        if (contains(record.original_channel.at, record.original_channel.length, request->channel.data, request->channel.length))
        {
            asi_control_ok(session, request->correlation_id, record.recording_id);
            return;
        }
    }
    asi_control_ok(session, request->correlation_id, AS_NULL_VALUE);
}

void asi_query_position(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (!asi_catalog_find(session->archive->catalog, request->recording_id, &record))
    {
        asi_control_unknown_recording(session, request->correlation_id, request->recording_id);
        return;
    }
    const int64_t recorded = asi_uses_recorded_position(session->archive, request->recording_id);
    int64_t position = AS_NULL_VALUE;
    switch (request->template_id)
    {
        case ASI_CODEC_START_POSITION:
            position = record.start_position;
            break;
        case ASI_CODEC_STOP_POSITION:
            position = record.stop_position;
            break;
        case ASI_CODEC_RECORDING_POSITION:
            position = recorded;
            break;
        default:
            position = AS_NULL_VALUE == recorded ? record.stop_position : recorded;
            break;
    }
    asi_control_ok(session, request->correlation_id, position);
}
