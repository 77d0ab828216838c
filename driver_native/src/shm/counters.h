/* Counters: metadata and value records in the CnC file. Spec: 01 §5-7.
 *
 * Only the driver's conductor allocates and frees. Any process may read. A record's state is stored last (release), so a
 * reader that sees ALLOCATED sees type, key and label; registration id and owner id may follow later. */
#ifndef ASI_SHM_COUNTERS_H
#define ASI_SHM_COUNTERS_H

#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/result.h"

#define ASI_COUNTER_KEY_CAPACITY 112
#define ASI_COUNTER_LABEL_CAPACITY 380

enum
{
    ASI_COUNTER_UNUSED = 0,
    ASI_COUNTER_ALLOCATED = 1,
    ASI_COUNTER_RECLAIMED = -1
};

/* Type ids. Spec: 01 §7.2. */
enum
{
    ASI_COUNTER_TYPE_SYSTEM = 0,
    ASI_COUNTER_TYPE_PUBLISHER_LIMIT = 1,
    ASI_COUNTER_TYPE_SENDER_POSITION = 2,
    ASI_COUNTER_TYPE_RECEIVER_HWM = 3,
    ASI_COUNTER_TYPE_SUBSCRIBER_POSITION = 4,
    ASI_COUNTER_TYPE_RECEIVER_POSITION = 5,
    ASI_COUNTER_TYPE_SEND_CHANNEL_STATUS = 6,
    ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS = 7,
    ASI_COUNTER_TYPE_SENDER_LIMIT = 9,
    ASI_COUNTER_TYPE_PER_IMAGE = 10,
    ASI_COUNTER_TYPE_CLIENT_HEARTBEAT = 11,
    ASI_COUNTER_TYPE_PUBLISHER_POSITION = 12,
    ASI_COUNTER_TYPE_SENDER_BPE = 13,
    ASI_COUNTER_TYPE_LOCAL_SOCKADDR = 14,
    ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS = 15,
    ASI_COUNTER_TYPE_RESOLVER_CACHE = 16,
    ASI_COUNTER_TYPE_FLOW_CONTROL_RECEIVERS = 17,
    ASI_COUNTER_TYPE_MDC_DESTINATIONS = 18,
    ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED = 19,
    ASI_COUNTER_TYPE_RECEIVER_NAKS_SENT = 20,
    ASI_COUNTER_TYPE_BOOTSTRAP_NEIGHBOR = 21,
    ASI_COUNTER_TYPE_RECORDING_POSITION = 100
};

typedef struct asi_counter_metadata
{
    int32_t state;                   /* 0..3 */
    int32_t type_id;                 /* 4..7 */
    int64_t free_for_reuse_deadline_ms; /* 8..15; INT64_MAX = not reusable */
    uint8_t key[ASI_COUNTER_KEY_CAPACITY]; /* 16..127 */
    int32_t label_length;            /* 128..131 */
    uint8_t label[ASI_COUNTER_LABEL_CAPACITY]; /* 132..511 */
} asi_counter_metadata;

typedef struct asi_counter_value
{
    int64_t value;            /* 0..7 */
    int64_t registration_id;  /* 8..15 */
    int64_t owner_id;         /* 16..23 */
    int64_t reference_id;     /* 24..31 */
    uint8_t pad[96];          /* 32..127 */
} asi_counter_value;

AS_STATIC_ASSERT(sizeof(asi_counter_metadata) == 512, "Spec: 01 §5.1");
AS_STATIC_ASSERT(offsetof(asi_counter_metadata, label_length) == 128, "Spec: 01 §5.1");
AS_STATIC_ASSERT(sizeof(asi_counter_value) == 128, "Spec: 01 §5.2");
AS_STATIC_ASSERT(offsetof(asi_counter_value, reference_id) == 24, "Spec: 01 §5.2");

/* A view of both sections, for readers and writers. */
typedef struct asi_counters
{
    asi_counter_metadata *metadata; /* borrowed */
    asi_counter_value *values;      /* borrowed */
    int32_t max_count;              /* ids are 0..max_count - 1 */
} asi_counters;

as_result asi_counters_init(
    asi_counters *counters, void *metadata, int64_t metadata_length, void *values, int64_t values_length) AS_MUST_USE;

/* The conductor's part: which ids are free, and from when. */
typedef struct asi_counters_manager
{
    asi_counters counters;
    int64_t reuse_timeout_ms;
    int32_t high_water_id;     /* highest id ever allocated, -1 at first */
    int32_t *free_ids;         /* owned FIFO of reclaimed ids, capacity max_count */
    int32_t free_head;
    int32_t free_count;
} asi_counters_manager;

as_result asi_counters_manager_init(asi_counters_manager *manager, const asi_counters *counters, int64_t reuse_timeout_ms)
    AS_MUST_USE;
void asi_counters_manager_close(asi_counters_manager *manager);
/* Counters that can be allocated now or soon. */
int32_t asi_counters_left(const asi_counters_manager *manager);

typedef struct asi_counter_request
{
    int32_t type_id;
    const void *key;      /* cut at 112 bytes */
    int64_t key_length;
    const char *label;    /* cut at 380 bytes; need not be terminated */
    int64_t label_length;
    int64_t registration_id;
    int64_t owner_id;
    int64_t reference_id;
    int64_t initial_value;
} asi_counter_request;

/* AS_E_STORAGE if every id is taken. */
as_result asi_counters_allocate(
    asi_counters_manager *manager, const asi_counter_request *request, int64_t now_ms, int32_t *counter_id) AS_MUST_USE;
void asi_counters_free(asi_counters_manager *manager, int32_t counter_id, int64_t now_ms);

/* Registration id of the counter whose value is at `value`. If it has changed, the driver has freed that counter, and the
 * record belongs to another one. */
static inline int64_t asi_counter_registration(const int64_t *value)
{
    return asi_load_acquire_i64(&((const asi_counter_value *)(const void *)value)->registration_id);
}

static inline int64_t *asi_counter_addr(const asi_counters *counters, int32_t counter_id)
{
    return &counters->values[counter_id].value;
}

/* Adds to a system counter; any thread. */
static inline void asi_counters_add(const asi_counters *counters, int32_t system_counter_id, int64_t delta)
{
    asi_fetch_add_i64(asi_counter_addr(counters, system_counter_id), delta);
}

/* Loads the state with acquire; UNUSED for an id out of range. */
int32_t asi_counter_state(const asi_counters *counters, int32_t counter_id);
/* Copies the label with a terminator (`to` holds ASI_COUNTER_LABEL_CAPACITY + 1). Invalid lengths are clipped. */
void asi_counter_label(const asi_counters *counters, int32_t counter_id, char *to);
void asi_counter_append_label(asi_counters *counters, int32_t counter_id, const char *suffix);
/* First allocated id of that type for which `matches` (may be NULL) returns true; -1 if there is none. */
int32_t asi_counters_find(const asi_counters *counters, int32_t type_id,
    bool (*matches)(const asi_counters *counters, int32_t counter_id, void *context), void *context);
int32_t asi_counters_find_by_registration(const asi_counters *counters, int32_t type_id, int64_t registration_id);

/* STREAM key and label of Spec: 01 §7.1-7.2: "<name>: <registration id> <session id> <stream id> <channel><suffix>". */
typedef struct asi_stream_counter
{
    int32_t type_id;
    const char *name;
    int64_t registration_id; /* of key and label */
    int64_t counter_registration_id;
    int64_t owner_id;
    int64_t reference_id;
    int32_t session_id;
    int32_t stream_id;
    const char *channel;
    const char *suffix;      /* may be NULL */
    int64_t initial_value;
} asi_stream_counter;

as_result asi_counters_allocate_stream(
    asi_counters_manager *manager, const asi_stream_counter *stream, int64_t now_ms, int32_t *counter_id) AS_MUST_USE;

/* The Aeron release that this driver is compatible with. The labels of counters 15 and 34 and the value of 34 contain it. */
#define ASI_AERON_VERSION_TEXT "1.52.0"
#define ASI_AERON_VERSION 0x013400

/* System counters: ids 0..45 are their type-0 keys. Spec: 01 §6. */
enum
{
    ASI_SYSTEM_BYTES_SENT = 0,
    ASI_SYSTEM_BYTES_RECEIVED = 1,
    ASI_SYSTEM_RECEIVER_OFFER_FAILURES = 2,
    ASI_SYSTEM_SENDER_OFFER_FAILURES = 3,
    ASI_SYSTEM_CONDUCTOR_OFFER_FAILURES = 4,
    ASI_SYSTEM_NAKS_SENT = 5,
    ASI_SYSTEM_NAKS_RECEIVED = 6,
    ASI_SYSTEM_STATUS_MESSAGES_SENT = 7,
    ASI_SYSTEM_STATUS_MESSAGES_RECEIVED = 8,
    ASI_SYSTEM_HEARTBEATS_SENT = 9,
    ASI_SYSTEM_HEARTBEATS_RECEIVED = 10,
    ASI_SYSTEM_RETRANSMITS_SENT = 11,
    ASI_SYSTEM_FLOW_CONTROL_UNDER_RUNS = 12,
    ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS = 13,
    ASI_SYSTEM_INVALID_PACKETS = 14,
    ASI_SYSTEM_ERRORS = 15,
    ASI_SYSTEM_SHORT_SENDS = 16,
    ASI_SYSTEM_FAILED_LOG_BUFFER_FREES = 17,
    ASI_SYSTEM_SENDER_FLOW_CONTROL_LIMITS = 18,
    ASI_SYSTEM_UNBLOCKED_PUBLICATIONS = 19,
    ASI_SYSTEM_UNBLOCKED_COMMANDS = 20,
    ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY = 21,
    ASI_SYSTEM_LOSS_GAP_FILLS = 23,
    ASI_SYSTEM_CLIENT_TIMEOUTS = 24,
    ASI_SYSTEM_RESOLUTION_CHANGES = 25,
    ASI_SYSTEM_CONDUCTOR_MAX_CYCLE_TIME = 26,
    ASI_SYSTEM_CONDUCTOR_CYCLE_EXCEEDED = 27,
    ASI_SYSTEM_SENDER_MAX_CYCLE_TIME = 28,
    ASI_SYSTEM_SENDER_CYCLE_EXCEEDED = 29,
    ASI_SYSTEM_RECEIVER_MAX_CYCLE_TIME = 30,
    ASI_SYSTEM_RECEIVER_CYCLE_EXCEEDED = 31,
    ASI_SYSTEM_RESOLVER_MAX_TIME = 32,
    ASI_SYSTEM_RESOLVER_EXCEEDED = 33,
    ASI_SYSTEM_AERON_VERSION = 34,
    ASI_SYSTEM_BYTES_CURRENTLY_MAPPED = 35,
    ASI_SYSTEM_RETRANSMITTED_BYTES = 36,
    ASI_SYSTEM_RETRANSMIT_OVERFLOW = 37,
    ASI_SYSTEM_ERROR_FRAMES_RECEIVED = 38,
    ASI_SYSTEM_ERROR_FRAMES_SENT = 39,
    ASI_SYSTEM_PUBLICATIONS_REVOKED = 40,
    ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED = 41,
    ASI_SYSTEM_IMAGES_REJECTED = 42,
    ASI_SYSTEM_CONTROL_PROTOCOL_VERSION = 43,
    ASI_SYSTEM_STATUS_MESSAGES_REJECTED = 44,
    ASI_SYSTEM_COUNTER_COUNT = 46
};

typedef struct asi_system_labels /* the parts of system labels that depend on configuration */
{
    const char *mode;            /* DEDICATED, SHARED, SHARED_NETWORK, INVOKER */
    const char *driver_name;     /* resolver name, "" if none */
    int64_t conductor_threshold_ns;
    int64_t sender_threshold_ns;
    int64_t receiver_threshold_ns;
    int64_t resolver_threshold_ns;
} asi_system_labels;

/* Allocates the system counters of a new file and sets the version counters. */
as_result asi_counters_allocate_system(asi_counters_manager *manager, const asi_system_labels *labels, int64_t now_ms) AS_MUST_USE;

#endif
