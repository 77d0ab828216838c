/* Log buffer file: three terms and a metadata section; position and term arithmetic. Spec: 02 §1, §2, §4.
 *
 * File: term 0 | term 1 | term 2 | gap to page size | metadata (last 4096 bytes). The driver creates and initialises it, then
 * announces the path on the broadcast buffer. The release store there publishes the metadata. The writers of the fields are
 * given below. */
#ifndef ASI_SHM_LOG_LAYOUT_H
#define ASI_SHM_LOG_LAYOUT_H

#include <stddef.h>

#include "base/atomic.h"
#include "base/map.h"
#include "wire/frame.h"

#define ASI_LOG_PARTITION_COUNT 3
#define ASI_LOG_METADATA_LENGTH 4096
#define ASI_LOG_DEFAULT_HEADER_CAPACITY 128

enum
{
    ASI_LOG_CONCURRENT_PUBLICATION = 0,
    ASI_LOG_EXCLUSIVE_PUBLICATION = 1,
    ASI_LOG_PUBLICATION_IMAGE = 2
};

/* Only this field breaks natural alignment. Its type has a lower alignment, so that the compiler still treats every other
   field as aligned. */
typedef int64_t asi_i64_aligned_4 __attribute__((aligned(4)));

typedef struct asi_log_metadata
{
    /* Written by producers (fetch-add or release; rotation by CAS); read by driver and producers with acquire. */
    int64_t tail_counters[ASI_LOG_PARTITION_COUNT]; /* 0..23: term id << 32 | term offset */
    int32_t active_term_count;                      /* 24..27 */
    uint8_t pad_1[100];                             /* 28..127 */
    /* Written by the driver with release; read by clients with acquire. */
    int64_t end_of_stream_position;                 /* 128..135 */
    int32_t is_connected;                           /* 136..139 */
    int32_t active_transport_count;                 /* 140..143 */
    uint8_t pad_2[112];                             /* 144..255 */
    /* Written once by the driver before the log is announced. */
    int64_t correlation_id;                         /* 256..263 */
    int32_t initial_term_id;                        /* 264..267 */
    int32_t default_header_length;                  /* 268..271 */
    int32_t mtu_length;                             /* 272..275 */
    int32_t term_length;                            /* 276..279 */
    int32_t page_size;                              /* 280..283 */
    int32_t publication_window_length;              /* 284..287 */
    int32_t receiver_window_length;                 /* 288..291 */
    int32_t socket_sndbuf_length;                   /* 292..295 */
    int32_t os_default_socket_sndbuf_length;        /* 296..299 */
    int32_t os_max_socket_sndbuf_length;            /* 300..303 */
    int32_t socket_rcvbuf_length;                   /* 304..307 */
    int32_t os_default_socket_rcvbuf_length;        /* 308..311 */
    int32_t os_max_socket_rcvbuf_length;            /* 312..315 */
    int32_t max_resend;                             /* 316..319 */
    uint8_t default_header[ASI_LOG_DEFAULT_HEADER_CAPACITY]; /* 320..447 */
    int64_t entity_tag;                             /* 448..455 */
    int64_t response_correlation_id;                /* 456..463 */
    int64_t linger_timeout_ns;                      /* 464..471 */
    int64_t untethered_window_limit_timeout_ns;     /* 472..479 */
    int64_t untethered_resting_timeout_ns;          /* 480..487 */
    uint8_t group;                                  /* 488 */
    uint8_t is_response;                            /* 489 */
    uint8_t rejoin;                                 /* 490 */
    uint8_t reliable;                               /* 491 */
    uint8_t sparse;                                 /* 492 */
    uint8_t signal_eos;                             /* 493 */
    uint8_t spies_simulate_connection;              /* 494 */
    uint8_t tether;                                 /* 495 */
    uint8_t is_publication_revoked;                 /* 496: driver, release; client, acquire */
    uint8_t type;                                   /* 497 */
    uint8_t spare[2];                               /* 498..499 */
    asi_i64_aligned_4 untethered_linger_timeout_ns; /* 500..507: plain access */
    uint8_t pad_3[ASI_LOG_METADATA_LENGTH - 508];   /* 508..4095 */
} asi_log_metadata;

AS_STATIC_ASSERT(sizeof(asi_log_metadata) == ASI_LOG_METADATA_LENGTH, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, end_of_stream_position) == 128, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, correlation_id) == 256, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, term_length) == 276, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, max_resend) == 316, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, default_header) == 320, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, entity_tag) == 448, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, group) == 488, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, is_publication_revoked) == 496, "Spec: 02 §2");
AS_STATIC_ASSERT(offsetof(asi_log_metadata, untethered_linger_timeout_ns) == 500, "Spec: 02 §2");

/* A mapped log with a copy of its constants. The terms and metadata are borrowed from `map`. */
typedef struct asi_log
{
    asi_map map; /* owned */
    uint8_t *terms[ASI_LOG_PARTITION_COUNT];
    asi_log_metadata *metadata;
    int32_t term_length;
    int32_t initial_term_id;
    int32_t position_bits; /* log2(term_length) */
    int32_t mtu_length;
    /* Used by the log's one writer, for asi_log_page_ahead and asi_log_page_block. */
    int64_t paged_from;    /* where the first pass through the terms began */
    int64_t paged_to;
    int64_t page_next_at;  /* position of the next allocation; INT64_MAX: never again */
    int64_t page_step;     /* maximum bytes allocated per call */
    int64_t pages_ahead;   /* bytes to keep allocated beyond the written data */
    uint8_t *backed;       /* owned: for each page of the terms, whether it has storage; NULL: all have */
    int32_t page_bits;     /* log2 of the page length, used with `backed` */
    int64_t backed_from;   /* used by the log's one writer: all pages of [backed_from, backed_to) have storage */
    int64_t backed_to;
    int64_t backed_since;  /* since there the writer has been in order */
} asi_log;

int64_t asi_log_file_length(int32_t term_length, int32_t page_size);
/* Creates a sparse file. The metadata holds term_length and page_size; everything else is zero. */
as_result asi_log_create(asi_log *log, const char *path, int32_t term_length, int32_t page_size) AS_MUST_USE;
/* Allocates storage for up to `length` bytes of the file from *populated on, and advances *populated. False if the file
 * system refuses. Touches no byte: others may use the log meanwhile. A call takes about 1 ms for 1 MiB. */
bool asi_log_populate(asi_log *log, int64_t *populated, int64_t length);
/* Maps an announced log and checks its constants (power of two, ranges, file length, mtu), because a file of another process
 * is untrusted input. The text of AS_E_DATA names path and field. */
as_result asi_log_open_untrusted(asi_log *log, const char *path, bool pre_touch) AS_MUST_USE;
void asi_log_close(asi_log *log);

/* For a sparse log that a process writes on behalf of a peer: from now on asi_log_back tracks which pages have storage. */
as_result asi_log_track_backing(asi_log *log) AS_MUST_USE;
bool asi_log_back_pages(asi_log *log, int64_t position, int64_t length);
/* Allocates storage for the pages of [position, position + length), which may cross into the next term. False if the file
 * system refuses: touching such a page would end the process by SIGBUS. Thread: the one that writes the log. */
static inline bool asi_log_back(asi_log *log, int64_t position, int64_t length)
{
    return NULL == log->backed || (position >= log->backed_from && position + length <= log->backed_to) ||
        asi_log_back_pages(log, position, length);
}

/* True if the page of a term's byte has storage. A page without storage reads as zeros and need not be touched. */
static inline bool asi_log_is_backed(const asi_log *log, const uint8_t *at)
{
    return NULL == log->backed || 0 != asi_load_acquire_u8(&log->backed[(at - log->terms[0]) >> log->page_bits]);
}

bool asi_log_add_pages(asi_log *log, int64_t position);
/* Allocates and maps the next pages of a sparse log, whose end is `position`, before a message needs them. Acts only during
 * the first pass through the terms. Keeps as many bytes ahead as were used, up to pages_ahead, in steps of one per call,
 * because a call may delay a message. Does nothing if the stream is faster than that. Without it publisher, driver and
 * subscriber each take a fault at every page, and these faults cause the longest round trips. Returns true if it allocated
 * pages, so that a duty cycle counts it as work. Thread rule: one per asi_log; several processes may. */
static inline bool asi_log_page_ahead(asi_log *log, int64_t position)
{
    return __builtin_expect(position >= log->page_next_at, 0) && asi_log_add_pages(log, position);
}

void asi_log_claim_pages(asi_log *log, int64_t from, int64_t to);
/* As asi_log_page_ahead, for a block of one term that is about to be written: allocates its pages at once. */
static inline void asi_log_page_block(asi_log *log, int64_t from, int64_t to)
{
    if (__builtin_expect(to > log->page_next_at, 0))
    {
        asi_log_claim_pages(log, from, to);
    }
}

/* Sets the raw tails at creation; `term_offset` 0 and term_id == initial_term_id for a new log. Spec: 02 §2.2. */
void asi_log_init_tails(asi_log *log, int32_t initial_term_id, int32_t term_id, int32_t term_offset);
void asi_log_init_default_header(asi_log *log, int32_t session_id, int32_t stream_id, int32_t initial_term_id);

static inline int32_t asi_log_term_id(int64_t raw_tail) { return (int32_t)(raw_tail >> 32); }

static inline int32_t asi_log_term_offset(int64_t raw_tail, int32_t term_length)
{
    const int64_t offset = raw_tail & 0xFFFFFFFFLL;
    return (int32_t)(offset < term_length ? offset : term_length);
}

static inline int64_t asi_log_raw_tail(int32_t term_id, int64_t term_offset)
{
    return (int64_t)(((uint64_t)(uint32_t)term_id << 32) | (uint64_t)term_offset);
}

static inline int32_t asi_log_index(int32_t term_count) { return (int32_t)((uint32_t)term_count % ASI_LOG_PARTITION_COUNT); }

static inline int32_t asi_log_index_of_position(int64_t position, int32_t position_bits)
{
    /* Unsigned: an invalid negative position must not give a negative index. */
    return (int32_t)((uint64_t)(position >> position_bits) % ASI_LOG_PARTITION_COUNT);
}

/* Unsigned shift: term counts read from a broken log may be negative. */
static inline int64_t asi_log_position_of_count(int32_t term_count, int64_t term_offset, int32_t position_bits)
{
    return (int64_t)((uint64_t)(int64_t)term_count << position_bits) + term_offset;
}

/* The count is unsigned here: peers name the end of the last term by the term id after it. An id before the initial one gives a
 * position beyond the maximum. */
static inline int64_t asi_log_position(int32_t term_id, int64_t term_offset, int32_t position_bits, int32_t initial_term_id)
{
    return ((int64_t)(uint32_t)asi_wrap_sub(term_id, initial_term_id) << position_bits) + term_offset;
}

static inline int32_t asi_log_term_id_of_position(int64_t position, int32_t position_bits, int32_t initial_term_id)
{
    return asi_wrap_add((int32_t)(position >> position_bits), initial_term_id);
}

static inline int64_t asi_log_max_position(int32_t term_length) { return (int64_t)term_length << 31; }

/* The nearest position that a frame of the driver may name. A peer refuses an offset that is a whole term, and takes the term id
 * after the last one for an id before the first: it would lose the stream at its maximum position. Spec: 11 §3. */
static inline int64_t asi_log_nameable_position(int64_t position, int32_t term_length)
{
    const int64_t last = asi_log_max_position(term_length) - AS_FRAME_ALIGNMENT;
    return position < last ? position : last;
}

static inline int32_t asi_log_max_message_length(int32_t term_length)
{
    return term_length / 8 < AS_MESSAGE_MAX_LENGTH ? term_length / 8 : AS_MESSAGE_MAX_LENGTH;
}

/* Bytes of term that a message of `length` payload bytes occupies; `max_payload` = mtu - 32. */
static inline int64_t asi_log_fragmented_length(int64_t length, int32_t max_payload)
{
    const int64_t remainder = length % max_payload;
    return (length / max_payload) * (max_payload + AS_FRAME_HEADER_LENGTH) +
        (remainder > 0 ? asi_align_i64(remainder + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT) : 0);
}

/* Producer position: from the raw tail of the active partition, with the offset clamped to the term. Any thread. */
int64_t asi_log_producer_position(const asi_log *log);
/* Moves to the next term. Idempotent; every thread that trips calls it, and so does the unblocker. Spec: 02 §5.4. */
void asi_log_rotate(asi_log *log, int32_t term_count, int32_t term_id);
/* Zeroes up to one term boundary towards `target`; returns the new clean position. Conductor only. Spec: 02 §8. On a full file
 * system it ends at a page boundary before that, so callers ask asi_log_is_clean_for before they move a limit. */
int64_t asi_log_clean(asi_log *log, int64_t clean_position, int64_t target);
/* True if the log is zeroed for publishers that may write up to `limit`: a message that begins below it ends within a term of it,
 * and the bytes up to three terms behind the clean position are zero. Spec: 02 §7.3. */
static inline bool asi_log_is_clean_for(const asi_log *log, int64_t clean_position, int64_t limit)
{
    return limit - clean_position < (ASI_LOG_PARTITION_COUNT - 1) * (int64_t)log->term_length;
}

#endif
