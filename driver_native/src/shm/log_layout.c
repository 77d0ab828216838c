/* Log buffer files: creation, checked opening, tails, rotation, cleaning; see log_layout.h. */
#include "shm/log_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/zero.h"

#define PAGE_MIN_LENGTH 4096
#define PAGE_MAX_LENGTH (1024 * 1024 * 1024)
/* Allocating a page takes about 3 us, during which the allocating thread's messages wait. The driver allocates pages one per
 * cycle and far ahead. A publisher then only maps existing pages, a few at a time, so that fewer than one in a hundred small
 * messages waits. */
#define PAGES_AHEAD_OF_DRIVER (256 * 1024)
#define PAGES_STEP_OF_DRIVER 1
#define PAGES_AHEAD_OF_CLIENT (32 * 1024)
#define PAGES_STEP_OF_CLIENT 2
#define PAGES_OUTRUN_LENGTH (64 * 1024)
#define KNOWN_AHEAD (256 * 1024)
#define BACKED_AT_ONCE (64 * 1024)
#define CACHED_LOG_MAX_LENGTH (32 * 1024 * 1024)
#define NOT_PAGED (-1)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; headers may be older */
#endif

int64_t asi_log_file_length(int32_t term_length, int32_t page_size)
{
    return asi_align_i64((int64_t)term_length * ASI_LOG_PARTITION_COUNT + ASI_LOG_METADATA_LENGTH, page_size);
}

static bool is_power_of_two_within(int64_t value, int64_t min, int64_t max)
{
    return asi_is_power_of_two(value) && value >= min && value <= max;
}

static int64_t page_length(void) { return sysconf(_SC_PAGESIZE); }

static void bind_sections(asi_log *log, const asi_map *map, int32_t term_length)
{
    *log = (asi_log){
        .map = *map, .term_length = term_length, .position_bits = asi_log2(term_length), .paged_to = NOT_PAGED
    };
    for (int i = 0; i < ASI_LOG_PARTITION_COUNT; i++)
    {
        log->terms[i] = map->base + (int64_t)i * term_length;
    }
    log->metadata = (asi_log_metadata *)(void *)(map->base + map->length - ASI_LOG_METADATA_LENGTH);
}

/* False if there is no space. If an older kernel does not support the call, the first write allocates the page. */
static bool populate(uint8_t *page, int64_t length)
{
    return 0 == madvise(page, (size_t)length, MADV_POPULATE_WRITE) || (EFAULT != errno && ENOMEM != errno);
}

/* Maps pages in one call, instead of one fault per page. False: there is no space for them. */
static bool map_pages(uint8_t *from, int64_t length)
{
    const size_t before = (uintptr_t)from & (uintptr_t)(page_length() - 1);
    return populate(from - before, length + (int64_t)before);
}

as_result asi_log_create(asi_log *log, const char *path, int32_t term_length, int32_t page_size)
{
    if (!is_power_of_two_within(term_length, AS_TERM_MIN_LENGTH, AS_TERM_MAX_LENGTH))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "term length %" PRId32 " of %s is no power of two from 64k to 1g", term_length, path);
    }
    if (!is_power_of_two_within(page_size, PAGE_MIN_LENGTH, PAGE_MAX_LENGTH))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "page size %" PRId32 " of %s is no power of two from 4k to 1g", page_size, path);
    }
    asi_map map;
    const as_result result = asi_map_create(&map, path, asi_log_file_length(term_length, page_size), false);
    if (AS_OK != result)
    {
        return result;
    }
    bind_sections(log, &map, term_length);
    if (!map_pages((uint8_t *)log->metadata, ASI_LOG_METADATA_LENGTH))
    {
        asi_log_close(log);
        (void)unlink(path);
        return asi_fail(AS_E_STORAGE, ENOSPC, "no room for log %s: free space there, or ask for a smaller term-length", path);
    }
    log->metadata->term_length = term_length;
    log->metadata->page_size = page_size;
    log->page_next_at = 0;
    log->page_step = PAGES_STEP_OF_DRIVER * page_length();
    log->pages_ahead = PAGES_AHEAD_OF_DRIVER;
    return AS_OK;
}

/* Storage that another thread than the log's writer allocated ahead: the writer need not ask for it again. */
static void note_backed(asi_log *log, const uint8_t *from, int64_t length)
{
    const uint8_t *end_of_terms = log->terms[0] + ASI_LOG_PARTITION_COUNT * (int64_t)log->term_length;
    for (int64_t at = 0; NULL != log->backed && at < length && from + at < end_of_terms; at += (int64_t)1 << log->page_bits)
    {
        asi_store_release_u8(&log->backed[(from + at - log->terms[0]) >> log->page_bits], 1);
    }
}

bool asi_log_populate(asi_log *log, int64_t *populated, int64_t length)
{
    const int64_t left = log->map.length - *populated;
    const int64_t wanted = asi_align_i64(length, page_length());
    const int64_t taken = wanted < left ? wanted : left;
    if (taken > 0 && !populate(log->map.base + *populated, taken))
    {
        return false;
    }
    note_backed(log, log->map.base + *populated, taken);
    *populated += taken;
    log->page_next_at = *populated == log->map.length ? INT64_MAX : log->page_next_at;
    return true;
}

static uint8_t *address_of(const asi_log *log, int64_t position)
{
    return log->terms[asi_log_index_of_position(position, log->position_bits)] + (position & (log->term_length - 1));
}

as_result asi_log_track_backing(asi_log *log)
{
    const int32_t page_bits = asi_log2((int32_t)page_length());
    const int64_t pages = ASI_LOG_PARTITION_COUNT * (int64_t)log->term_length >> page_bits;
    log->backed = calloc((size_t)pages, sizeof(*log->backed));
    log->page_bits = page_bits;
    return NULL != log->backed ? AS_OK : asi_fail(AS_E_INTERNAL, ENOMEM, "no memory to track %" PRId64 " pages of a log", pages);
}

/* Allocates pages without storage from `at` on, in one call, up to `to` or the end of the term: at least one. */
static bool back_run(asi_log *log, int64_t at, int64_t to)
{
    const int64_t page = (int64_t)1 << log->page_bits;
    const int64_t left_in_term = log->term_length - (at & (log->term_length - 1));
    uint8_t *address = address_of(log, at);
    int64_t length = page;
    while (length < left_in_term && length < to - at && !asi_log_is_backed(log, address + length))
    {
        length += page;
    }
    bool has_storage = populate(address, length);
    if (!has_storage)
    {
        length = page;
        has_storage = populate(address, length);
    }
    if (has_storage)
    {
        note_backed(log, address, length);
    }
    return has_storage;
}

/* A stream in order gets as many pages at once as it has filled, up to BACKED_AT_ONCE, because a call for each page costs as much
 * as the page. Pages that the padding at the end of a term covers may never get storage, so counting does not show a complete log.
 * A stream in order calls this once for KNOWN_AHEAD instead, because the pages ahead have storage from the first pass. */
bool asi_log_back_pages(asi_log *log, int64_t position, int64_t length)
{
    const int64_t page = (int64_t)1 << log->page_bits;
    const int64_t from = position & ~(page - 1);
    const bool is_in_order = from >= log->backed_from && from <= log->backed_to;
    const int64_t filled = is_in_order ? log->backed_to - log->backed_since - page : 0;
    const int64_t ahead = filled < BACKED_AT_ONCE ? filled : BACKED_AT_ONCE;
    int64_t at = from;
    for (; at < position + length; at += page)
    {
        if (!asi_log_is_backed(log, address_of(log, at)) && !back_run(log, at, at + ahead))
        {
            return false;
        }
    }
    while (at < from + KNOWN_AHEAD && asi_log_is_backed(log, address_of(log, at)))
    {
        at += page;
    }
    log->backed_since = is_in_order ? log->backed_since : from;
    log->backed_from = from;
    log->backed_to = at;
    return true;
}

static bool is_first_lap(const asi_log *log, int64_t position)
{
    return NOT_PAGED != log->paged_to && position - log->paged_from < ASI_LOG_PARTITION_COUNT * (int64_t)log->term_length;
}

static void begin_paging(asi_log *log, int64_t position)
{
    log->paged_from = log->paged_to = position & ~(page_length() - 1);
    log->page_next_at = log->paged_to + page_length();
}

/* Allocates pages up to `to` or the end of the term that contains `from`. If an older kernel or lack of space prevents that,
 * the writer allocates the page on its first write, or receives the signal. */
static void make_pages(asi_log *log, int64_t from, int64_t to)
{
    const int64_t left_in_term = log->term_length - (from & (log->term_length - 1));
    const int64_t length = to - from < left_in_term ? to - from : left_in_term;
    const bool is_refused = length > 0 && 0 != madvise(address_of(log, from), (size_t)length, MADV_POPULATE_WRITE);
    if (!is_refused)
    {
        note_backed(log, address_of(log, from), length);
    }
    log->paged_to = length > 0 ? from + length : from;
    log->page_next_at = is_refused || !is_first_lap(log, log->paged_to) ? INT64_MAX : log->paged_to;
}

bool asi_log_add_pages(asi_log *log, int64_t position)
{
    if (NOT_PAGED == log->paged_to)
    {
        begin_paging(log, position);
        return false;
    }
    const int64_t page = page_length();
    const int64_t here = position & ~(page - 1);
    if (here - log->paged_to > PAGES_OUTRUN_LENGTH)
    {
        /* A writer that is this fast has reached these pages already, and two threads that allocate the same page slow each
           other down. */
        log->paged_to = here;
        log->page_next_at = is_first_lap(log, here) ? here + page : INT64_MAX;
        return false;
    }
    const int64_t used = position - log->paged_from;
    const int64_t target = here + (used < log->pages_ahead ? asi_align_i64(used, page) : log->pages_ahead);
    const int64_t from = log->paged_to > here ? log->paged_to : here;
    make_pages(log, from, target < from + log->page_step ? target : from + log->page_step);
    if (INT64_MAX != log->page_next_at)
    {
        log->page_next_at = log->paged_to < target ? position : here + log->page_step;
    }
    return log->paged_to > from;
}

void asi_log_claim_pages(asi_log *log, int64_t from, int64_t to)
{
    if (NOT_PAGED == log->paged_to)
    {
        begin_paging(log, from);
    }
    const int64_t first = from & ~(page_length() - 1);
    make_pages(log, log->paged_to > first ? log->paged_to : first, asi_align_i64(to, page_length()));
}

/* Spec: 02 §1 - lengths and page size define the whole layout, so they are checked against the file before use. */
static as_result check_constants_untrusted(const asi_map *map, const char *path, const asi_log_metadata *metadata)
{
    if (!is_power_of_two_within(metadata->term_length, AS_TERM_MIN_LENGTH, AS_TERM_MAX_LENGTH))
    {
        return asi_fail(AS_E_DATA, 0, "log %s: term length %" PRId32 " is no power of two from 64k to 1g", path,
            metadata->term_length);
    }
    if (!is_power_of_two_within(metadata->page_size, PAGE_MIN_LENGTH, PAGE_MAX_LENGTH))
    {
        return asi_fail(AS_E_DATA, 0, "log %s: page size %" PRId32 " is no power of two from 4k to 1g", path,
            metadata->page_size);
    }
    const int64_t expected = asi_log_file_length(metadata->term_length, metadata->page_size);
    if (map->length != expected)
    {
        return asi_fail(AS_E_DATA, 0, "log %s: file has %" PRId64 " bytes, its term length needs %" PRId64, path, map->length,
            expected);
    }
    const int32_t mtu = metadata->mtu_length;
    if (mtu <= AS_FRAME_HEADER_LENGTH || mtu > AS_MAX_UDP_PAYLOAD_LENGTH || 0 != mtu % AS_FRAME_ALIGNMENT)
    {
        return asi_fail(AS_E_DATA, 0, "log %s: mtu %" PRId32 " is no multiple of 32 from 64 to 65504", path, mtu);
    }
    return AS_OK;
}

as_result asi_log_open_untrusted(asi_log *log, const char *path, bool pre_touch)
{
    asi_map map;
    as_result result = asi_map_open(&map, path, asi_log_file_length(AS_TERM_MIN_LENGTH, PAGE_MIN_LENGTH), true);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? AS_E_STORAGE : result; /* the log was announced, so waiting does not help */
    }
    /* A copy, so that the checked values are the used ones, even if another process changes the file. */
    asi_log_metadata constants;
    memcpy(&constants, map.base + map.length - ASI_LOG_METADATA_LENGTH, sizeof(constants));
    result = check_constants_untrusted(&map, path, &constants);
    if (AS_OK != result)
    {
        asi_map_close(&map);
        return result;
    }
    bind_sections(log, &map, constants.term_length);
    log->initial_term_id = constants.initial_term_id;
    log->mtu_length = constants.mtu_length;
    log->page_step = PAGES_STEP_OF_CLIENT * page_length();
    log->pages_ahead = PAGES_AHEAD_OF_CLIENT;
    if (pre_touch && populate(map.base, map.length))
    {
        log->page_next_at = INT64_MAX;
    }
    return AS_OK;
}

void asi_log_close(asi_log *log)
{
    free(log->backed);
    asi_map_close(&log->map);
    *log = (asi_log){ 0 };
}

void asi_log_init_tails(asi_log *log, int32_t initial_term_id, int32_t term_id, int32_t term_offset)
{
    const int32_t term_count = asi_wrap_sub(term_id, initial_term_id);
    const int32_t active = asi_log_index(term_count);
    int64_t *tails = log->metadata->tail_counters;
    tails[active] = asi_log_raw_tail(term_id, term_offset);
    /* Rotation expects the id of three terms ago in the partition that it moves to. Spec: 02 §5.4. */
    tails[(active + 1) % ASI_LOG_PARTITION_COUNT] = asi_log_raw_tail(asi_wrap_sub(term_id, 2), 0);
    tails[(active + 2) % ASI_LOG_PARTITION_COUNT] = asi_log_raw_tail(asi_wrap_sub(term_id, 1), 0);
    log->metadata->initial_term_id = initial_term_id;
    log->initial_term_id = initial_term_id;
    asi_store_release_i32(&log->metadata->active_term_count, term_count);
}

void asi_log_init_default_header(asi_log *log, int32_t session_id, int32_t stream_id, int32_t initial_term_id)
{
    const asi_frame_header header = {
        .flags = ASI_FLAG_UNFRAGMENTED,
        .type = ASI_FRAME_DATA,
        .session_id = session_id,
        .stream_id = stream_id,
        .term_id = initial_term_id,
    };
    memcpy(log->metadata->default_header, &header, sizeof(header));
    log->metadata->default_header_length = AS_FRAME_HEADER_LENGTH;
}

int64_t asi_log_producer_position(const asi_log *log)
{
    const int32_t term_count = asi_load_acquire_i32(&log->metadata->active_term_count);
    const int64_t raw_tail = asi_load_acquire_i64(&log->metadata->tail_counters[asi_log_index(term_count)]);
    return asi_log_position(asi_log_term_id(raw_tail), asi_log_term_offset(raw_tail, log->term_length), log->position_bits,
        log->initial_term_id);
}

void asi_log_rotate(asi_log *log, int32_t term_count, int32_t term_id)
{
    const int32_t next_term_id = asi_wrap_add(term_id, 1);
    const int32_t next_count = asi_wrap_add(term_count, 1);
    const int32_t expected_term_id = asi_wrap_sub(next_term_id, ASI_LOG_PARTITION_COUNT);
    int64_t *next_tail = &log->metadata->tail_counters[asi_log_index(next_count)];
    for (;;)
    {
        const int64_t raw_tail = asi_load_acquire_i64(next_tail);
        if (asi_log_term_id(raw_tail) != expected_term_id ||
            asi_cas_i64(next_tail, raw_tail, asi_log_raw_tail(next_term_id, 0)))
        {
            break;
        }
    }
    /* If this fails, another thread that tripped has already done it. */
    (void)asi_cas_i32(&log->metadata->active_term_count, term_count, next_count);
}

int64_t asi_log_clean(asi_log *log, int64_t clean_position, int64_t target)
{
    target &= ~(int64_t)(AS_FRAME_ALIGNMENT - 1); /* it comes from subscribers' counters, which may contain any value */
    if (target <= clean_position)
    {
        return clean_position;
    }
    const int64_t offset = clean_position & (log->term_length - 1);
    const int64_t left_in_term = log->term_length - offset;
    int64_t length = target - clean_position < left_in_term ? target - clean_position : left_in_term;
    AS_ASSERT(clean_position >= 0 && 0 == clean_position % AS_FRAME_ALIGNMENT && length >= AS_FRAME_ALIGNMENT);
    uint8_t *from = address_of(log, clean_position);
    if (is_first_lap(log, clean_position) && !map_pages(from, length))
    {
        /* A page of the range has no storage, as under padding: that one is zero, the others must still be cleaned. */
        const int64_t left_in_page = page_length() - (int64_t)((uintptr_t)from & (uintptr_t)(page_length() - 1));
        length = length < left_in_page ? length : left_in_page;
        if (!map_pages(from, length))
        {
            return clean_position + length;
        }
    }
    /* Spec: 02 §8 - the first word last: zeroed content must never follow a stale positive frame length. */
    uint8_t *rest = from + sizeof(int64_t);
    const size_t rest_length = (size_t)length - sizeof(int64_t);
    if (ASI_LOG_PARTITION_COUNT * (int64_t)log->term_length > CACHED_LOG_MAX_LENGTH)
    {
        asi_zero_uncached(rest, rest_length); /* the next write comes after eviction, so do not fill the caches with zeros */
    }
    else
    {
        memset(rest, 0, rest_length);
    }
    asi_store_release_i64((int64_t *)(void *)from, 0);
    return clean_position + length;
}
