/* The client's state: the structures that all files of client/ work on. Only those files and tests include it.
 *
 * One lock (as_client.mutex) guards every list, the broadcast receiver and the log cache. Whichever thread holds it may run
 * the conductor: the conductor's own thread, the application's thread in invoker mode, or a thread that waits for the
 * driver's answer. So an answer does not have to wait for the conductor's sleep. Handlers run with the lock held. The mutex
 * is of the error-checking kind, so a call from a handler fails instead of hanging. The message paths (offer, claim, poll)
 * take no lock and allocate nothing. */
#ifndef ASI_CLIENT_STATE_H
#define ASI_CLIENT_STATE_H

#include <pthread.h>

#include "aeron_spark/as_client.h"
#include "base/clock.h"
#include "base/thread.h"
#include "client/log_cache.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "shm/ring_mpsc.h"
#include "term/append.h"
#include "wire/command.h"

/* Fixed part, longest channel, and space for the counter command's key and label. */
#define ASI_COMMAND_CAPACITY (64 + AS_CHANNEL_MAX_LENGTH)
#define ASI_CLIENT_NAME_MAX_LENGTH 100
#define ASI_CLIENT_TEXT_CAPACITY 1024

/* A driver writes its heartbeat at each timer interval, by default once a second: one that is younger says nothing of a death. */
#define ASI_CLIENT_HEARTBEAT_AGE_MIN_MS 2000

/* Codes of fatal conditions; the numbers are the stock C client's. Spec: 03 §4. */
enum
{
    ASI_CLIENT_DRIVER_TIMEOUT = 1000,
    ASI_CLIENT_TIMEOUT = 1001,
    ASI_CLIENT_SERVICE_TIMEOUT = 1002
};

/* -- requests ----------------------------------------------------------------------------------------------------------- */

typedef enum asi_request_kind
{
    ASI_REQUEST_PUBLICATION,
    ASI_REQUEST_EXCLUSIVE_PUBLICATION,
    ASI_REQUEST_SUBSCRIPTION,
    ASI_REQUEST_COUNTER,
    ASI_REQUEST_STATIC_COUNTER,
    ASI_REQUEST_OPERATION,
    ASI_REQUEST_SESSION_ID
} asi_request_kind;

/* AWAITING > DONE or FAILED when answered or timed out. FAILED by timeout > ABANDONED when the owner has taken the failure
 * but the driver may still answer; such an answer is undone. */
typedef enum asi_request_state
{
    ASI_REQUEST_AWAITING,
    ASI_REQUEST_DONE,
    ASI_REQUEST_FAILED,
    ASI_REQUEST_ABANDONED
} asi_request_state;

typedef struct asi_request
{
    asi_request_kind kind;
    asi_request_state state;
    bool is_answered; /* no further event for this id will come */
    int64_t correlation_id;
    int64_t deadline_ns;
    /* Input of the resource. */
    char *channel; /* owned until the resource takes it */
    int32_t stream_id;
    int64_t counter_registration_id; /* of a static counter */
    as_on_image on_available;
    as_on_image on_unavailable;
    void *image_context;
    /* The answer. */
    void *resource; /* a member of the client's list, not owned */
    int32_t value;
    as_result failure;
    int32_t code;
    char *text; /* owned, NULL when out of memory */
    struct asi_request *next;
} asi_request;

/* A command under construction. */
typedef struct asi_command
{
    int32_t type_id;
    int64_t length;
    uint8_t bytes[ASI_COMMAND_CAPACITY];
} asi_command;

/* A removal for which the command ring had no space. The conductor sends it again. */
typedef struct asi_unsent
{
    asi_cmd_remove_publication message;
    int32_t type_id;
    struct asi_unsent *next;
} asi_unsent;

/* -- the client's objects ----------------------------------------------------------------------------------------------- */

struct as_publication
{
    asi_appender appender;
    /* Constant. */
    const int64_t *position_limit; /* stored by the driver with release; loaded here with acquire */
    const int32_t *is_connected;   /* likewise */
    int64_t max_possible_position;
    int32_t max_message_length;
    bool is_closed; /* conductor, release; publisher, acquire: a stale read costs one more message into a lingering log */
    as_client *client;
    asi_cached_log *log;
    char *channel; /* owned */
    int64_t registration_id;
    int64_t original_registration_id;
    int32_t limit_counter_id;
    int32_t channel_status_counter_id;
    struct as_publication *next;
};

struct as_image
{
    /* Constant. */
    uint8_t *terms[ASI_LOG_PARTITION_COUNT];
    asi_log_metadata *metadata;
    int64_t *subscriber_position; /* polling thread, release; driver, acquire. A copy of `flow_position` below */
    int64_t position_registration_id; /* registration id of that counter while this image owns it */
    int32_t term_length;
    int32_t position_bits;
    int32_t initial_term_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t subscriber_position_id;
    int64_t correlation_id;
    int64_t subscription_registration_id;
    int64_t join_position;
    int32_t mtu_length;
    bool is_network; /* not of an IPC publication or a spy, whose log is the publication's */
    as_client *client;
    asi_cached_log *log;
    char *source_identity; /* owned */
    /* Polling thread, release; any, acquire. Where the next poll begins. Not read back from the counter, because the driver
       takes that away from a client that was paused, and another may own it by then. */
    int64_t position;
    int64_t flow_position; /* likewise; stored before `position`, never below it while the image has its counter. See
                              pass_unfinished in batch.c */
    bool is_polled; /* polling thread, relaxed: a poll hands frames out and moves the position when its handler has returned */
    /* Written by the conductor when it closes the image, is_closed last (release). */
    bool is_closed;
    bool final_is_revoked;
    int64_t final_end_of_stream_position;
    int32_t reference_count; /* one for the conductor, plus those of the application; atomic */
    int32_t watch_count;     /* one for the references, plus those that may only ask whether it is closed; atomic */
    /* Conductor only, after the image has left its subscription. */
    const as_subscription *retired_from; /* NULL: the subscription is gone, no thread polls it */
    int64_t retired_sequence;
    int64_t free_at_ns;
    as_image *next;
};

/* Images as the polling thread sees them. The list is replaced as a whole, never changed. */
typedef struct asi_client_image_list
{
    struct asi_client_image_list *next_retired;
    int64_t retired_sequence;
    int32_t count;
    as_image *images[];
} asi_client_image_list;

struct as_subscription
{
    as_client *client;
    char *channel; /* owned */
    int64_t registration_id;
    int32_t stream_id;
    int32_t channel_status_counter_id;
    as_on_image on_available;
    as_on_image on_unavailable;
    void *image_context;
    /* Written by the conductor, release; read by the polling thread, acquire. */
    void *image_list; /* asi_client_image_list *, never NULL */
    int32_t image_count;
    bool is_closed;
    bool fences_for_all; /* copy of the client's flag */
    /* Polling thread only. Odd while a poll is running; what that poll may read is not freed. */
    int64_t poll_sequence;
    uint32_t round_robin;
    /* Conductor only. */
    asi_client_image_list *retired_lists;
    int64_t highest_image_id; /* correlation id of any image so far */
    as_subscription *next;
};

struct as_counter
{
    as_client *client;
    int64_t *value;
    int64_t value_registration_id; /* registration id in the counter's record while this counter owns it */
    int64_t registration_id;
    int32_t counter_id;
    bool is_static;
    bool is_closed; /* conductor, release; any, acquire */
    struct as_counter *next;
};

struct asi_waiting_image;

struct as_client
{
    as_client_options options; /* its strings point into this struct or are NULL */
    asi_clock clock;
    bool fences_for_all; /* constant; true: asi_fence_for_all may be used */
    char aeron_dir[AS_PATH_MAX];
    asi_trust trust; /* trust rules for that directory */
    char client_name[ASI_CLIENT_NAME_MAX_LENGTH + 1];
    asi_cnc cnc;
    asi_ring_mpsc ring;
    asi_counters counters;
    int64_t client_id;
    int64_t pid; /* process that opened the client */
    int32_t generation; /* fork generation of that process: a forked child has no conductor and must leave the client alone */
    asi_agent agent;
    pthread_mutex_t mutex;
    bool is_closed; /* stored under the lock with release; loaded anywhere with acquire */
    /* Guarded by the lock from here on. */
    int32_t close_code;
    char close_reason[ASI_CLIENT_TEXT_CAPACITY];
    asi_broadcast_receiver receiver;
    asi_log_cache logs;
    as_publication *publications;
    as_subscription *subscriptions;
    as_counter *owned_counters;
    as_image *retired_images;
    struct asi_waiting_image *waiting_images; /* owned; not mapped yet */
    int64_t next_mapping_ns;                  /* when they are tried again */
    asi_request *requests;
    asi_unsent *unsent;
    int64_t last_service_ns;
    int64_t next_keepalive_ns;
    int32_t heartbeat_counter_id; /* AS_NULL_VALUE until the driver has created it */
};

/* How old the heartbeat of a live driver may be. */
static inline int64_t asi_client_heartbeat_age_ms(const as_client *client)
{
    const int64_t timeout_ms = client->options.driver_timeout_ns / 1000000;
    return timeout_ms < ASI_CLIENT_HEARTBEAT_AGE_MIN_MS ? ASI_CLIENT_HEARTBEAT_AGE_MIN_MS : timeout_ms;
}

/* -- images, as the polling thread sees them ----------------------------------------------------------------------------- */

static inline bool asi_client_image_is_open(const as_image *image)
{
    return __builtin_expect(!asi_load_acquire_bool(&image->is_closed), 1);
}

/* True while the image owns its position counter. A client that was paused for longer than the liveness timeout may poll for
 * a moment after the driver has given the counter to another subscriber. */
/* The counter's value is this image's, too: after a client was paused for longer than the untethered timeouts, the driver has moved
 * the counter, which stays the subscription's, to where the next image joins. */
static inline bool asi_client_image_owns_position(const as_image *image)
{
    return __builtin_expect(asi_counter_registration(image->subscriber_position) == image->position_registration_id &&
        asi_load_relaxed_i64(image->subscriber_position) == asi_load_relaxed_i64(&image->flow_position), 1);
}

static inline bool asi_client_image_can_poll(const as_image *image)
{
    return asi_client_image_is_open(image) && asi_client_image_owns_position(image);
}

/* True while the log has the image's frame at `position`. A client that was paused for longer than the liveness timeout finds the
 * frames of a later lap there. A log is cleaned and written in order, so the frames that follow are this lap's, too. */
static inline bool asi_client_image_has_frame(const as_image *image, const asi_frame_header *frame, int64_t position)
{
    return __builtin_expect(asi_load_relaxed_i32(&frame->term_offset) == (position & (image->term_length - 1)) &&
        asi_load_relaxed_i32(&frame->term_id) ==
            asi_log_term_id_of_position(position, image->position_bits, image->initial_term_id), 1);
}

/* Shows the driver how much may be sent. A closed image has returned its counter, and the driver may have reused it. */
static inline void asi_client_image_advance_flow(as_image *image, int64_t position)
{
    if (__builtin_expect(position > asi_load_relaxed_i64(&image->flow_position), 1) && asi_client_image_can_poll(image))
    {
        asi_store_release_i64(&image->flow_position, position);
        asi_store_release_i64(image->subscriber_position, position);
    }
}

/* Also of an image that closed during the poll: its messages have been handed out. */
static inline void asi_client_image_advance(as_image *image, int64_t position)
{
    asi_client_image_advance_flow(image, position);
    asi_store_release_i64(&image->position, position);
}

/* A subscription is polled between these two calls; see subscription.c for the order of their loads and stores. NULL:
 * refused. Only one thread may poll. Concurrent polls are usually detected, but not always. */
static inline const asi_client_image_list *asi_client_subscription_poll_begin(as_subscription *subscription)
{
    const int64_t sequence = asi_load_relaxed_i64(&subscription->poll_sequence);
    if (__builtin_expect(asi_load_acquire_bool(&subscription->is_closed) || 0 != (sequence & 1), 0))
    {
        return NULL;
    }
    asi_store_relaxed_i64(&subscription->poll_sequence, sequence + 1);
    if (__builtin_expect(subscription->fences_for_all, 1))
    {
        asi_fence_compiler();
    }
    else
    {
        asi_fence_full();
    }
    return asi_load_acquire_ptr(&subscription->image_list);
}

static inline void asi_client_subscription_poll_end(as_subscription *subscription)
{
    asi_store_release_i64(&subscription->poll_sequence, asi_load_relaxed_i64(&subscription->poll_sequence) + 1);
}

#endif
