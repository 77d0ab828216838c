/* See time_index_write.h. */
#include "store/time_index_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "store/segment_layout.h"
#include "store/time_index_edit.h"

#define PENDING_MAX 64
#define NS_PER_MS 1000000
#define GIVE_BACK_SLOTS 4096 /* 128 KiB: interval of the checks of the recording's start */

struct asi_time_writer
{
    asi_time_writer_params params;
    char dir[AS_PATH_MAX];
    char path[AS_PATH_MAX];
    int fd;                        /* -1: not opened yet */
    int failure;
    bool is_rejected;              /* the file can't be created: no further attempts */
    asi_time_header header;
    int64_t next_slot;             /* of the first pending entry */
    int64_t next_give_back;        /* slot of the next check */
    int64_t last_ns;               /* minimum time of later writes */
    int64_t flushed_ns;
    asi_time_run run;              /* open if length > 0 */
    int32_t pending_count;
    uint8_t pending[PENDING_MAX * ASI_TIME_INDEX_ENTRY_LENGTH];
};

/* -- opening -------------------------------------------------------------------------------------------------------------- */

static uint32_t interval_ms(const asi_time_writer_params *params)
{
    const int64_t most = UINT32_MAX;
    const int64_t ms = params->interval_ns / NS_PER_MS + (0 == params->interval_ns % NS_PER_MS ? 0 : 1);
    return params->is_off ? 0 : (uint32_t)(ms < most ? ms : most);
}

static int write_header(const asi_time_writer *writer, int fd)
{
    uint8_t bytes[ASI_TIME_INDEX_HEADER_LENGTH];
    asi_time_header_encode(&writer->header, bytes);
    return asi_file_write_all(writer->params.files, fd, bytes, sizeof(bytes), 0);
}

/* Continues an existing index. Returns 0, 1 if the index is invalid, or -errno. Syncs if something was cut, because entries of
 * bytes that will be replaced must not come back after a power failure. Does not sync otherwise: on a busy disk a sync takes
 * seconds and would block the recorder or the whole archive. If the header is lost, its ids do not match the catalog and the
 * index is invalid. */
static int continue_index(asi_time_writer *writer, asi_time_file *file)
{
    const asi_time_writer_params *params = &writer->params;
    if (!asi_time_era_equals(&file->header.era, &params->known_era))
    {
        return 1;
    }
    bool is_cut;
    writer->header.first_slot = file->header.first_slot;
    int error = asi_time_file_cut(file, params->join_position, &writer->next_slot, &writer->last_ns, &is_cut);
    const bool is_same = asi_time_era_equals(&file->header.era, &params->era) && file->header.interval_ms == writer->header.interval_ms;
    if (0 == error && !is_same)
    {
        error = write_header(writer, file->fd);
    }
    return 0 == error && is_cut ? params->files->fdatasync(params->files->context, file->fd) : error;
}

static as_result open_existing(asi_time_writer *writer, const char *dir)
{
    const asi_time_writer_params *params = &writer->params;
    asi_time_file file;
    const as_result opened = asi_time_file_open_untrusted(&file, params->files, dir, params->recording_id, ASI_FILE_WRITE);
    if (AS_OK != opened && AS_AGAIN != opened)
    {
        return opened;
    }
    if (AS_OK == opened && 0 == continue_index(writer, &file))
    {
        writer->fd = file.fd;
        return AS_OK;
    }
    if (AS_OK == opened)
    {
        asi_time_file_close(&file);
    }
    writer->header.first_slot = writer->next_slot = writer->last_ns = 0;
    return asi_time_index_remove(params->files, dir, params->recording_id);
}

as_result asi_time_writer_open(const asi_time_writer_params *params, asi_time_writer **writer_out)
{
    asi_time_writer *writer = calloc(1, sizeof(*writer));
    if (NULL == writer)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the time index of recording %" PRId64, params->recording_id);
    }
    writer->params = *params;
    writer->fd = -1;
    writer->header = (asi_time_header){ .recording_id = params->recording_id, .era = params->era, .interval_ms = interval_ms(params) };
    as_result result = asi_time_index_path(writer->path, sizeof(writer->path), params->archive_dir, params->recording_id);
    snprintf(writer->dir, sizeof(writer->dir), "%s", params->archive_dir);
    result = AS_OK == result ? open_existing(writer, params->archive_dir) : result;
    if (AS_OK != result)
    {
        free(writer);
        return result;
    }
    writer->last_ns = writer->last_ns > params->not_before_ns ? writer->last_ns : params->not_before_ns;
    writer->next_give_back = writer->next_slot + GIVE_BACK_SLOTS;
    *writer_out = writer;
    return AS_OK;
}

/* -- writing -------------------------------------------------------------------------------------------------------------- */

static void note_failure(asi_time_writer *writer, int error)
{
    writer->failure = 0 == writer->failure ? -error : writer->failure;
}

/* Opens the file late, when there are first bytes to write an entry for. */
static bool is_open(asi_time_writer *writer)
{
    const asi_file_ops *files = writer->params.files;
    if (writer->fd >= 0 || writer->is_rejected)
    {
        return writer->fd >= 0;
    }
    const int fd = files->open(files->context, writer->path, ASI_FILE_CREATE);
    int error = fd < 0 ? fd : files->ftruncate(files->context, fd, 0);
    error = 0 == error ? write_header(writer, fd) : error;
    writer->is_rejected = error < 0;
    if (error < 0)
    {
        note_failure(writer, error);
        if (fd >= 0)
        {
            files->close(files->context, fd);
        }
        return false;
    }
    writer->fd = fd;
    return true;
}

/* True if the segment file before the start exists: detached segments may be attached again, and then their entries are
 * needed. */
static bool is_segment_before(const asi_time_writer *writer, int64_t start)
{
    const asi_time_writer_params *params = &writer->params;
    const int64_t base = asi_term_base(start, params->term_length) - params->segment_length;
    char path[AS_PATH_MAX];
    const int fd = base < 0 || AS_OK != asi_segment_path(path, sizeof(path), writer->dir, params->recording_id, base) ? -1 :
        params->files->open(params->files->context, path, ASI_FILE_READ);
    if (fd >= 0)
    {
        params->files->close(params->files->context, fd);
    }
    return fd >= 0;
}

static bool ends_behind(void *context, const asi_time_run *run) { return asi_time_run_end(run) > *(const int64_t *)context; }

/* Frees the blocks of purged segments' slots in the file system, once they are a quarter of the file. */
static void give_back(asi_time_writer *writer)
{
    const asi_time_writer_params *params = &writer->params;
    writer->next_give_back = writer->next_slot + GIVE_BACK_SLOTS;
    if (NULL == params->positions || NULL == params->files->punch)
    {
        return;
    }
    asi_time_file file = { .files = params->files, .fd = writer->fd, .header = writer->header, .slot_count = writer->next_slot };
    int64_t start = asi_recording_start(params->positions);
    int64_t before;
    const int64_t first = asi_time_file_search(&file, ends_behind, &start, &before);
    const int64_t dead = first - writer->header.first_slot;
    if (dead * 4 < writer->next_slot - writer->header.first_slot || is_segment_before(writer, start))
    {
        return;
    }
    const int64_t old_first = writer->header.first_slot;
    writer->header.first_slot = first;
    int error = write_header(writer, writer->fd);
    error = 0 != error ? error : params->files->punch(params->files->context, writer->fd, asi_time_slot_offset(old_first),
        asi_time_slot_offset(first) - asi_time_slot_offset(old_first));
    if (0 != error)
    {
        note_failure(writer, error);
    }
}

static void flush(asi_time_writer *writer, int64_t now_ns)
{
    const asi_file_ops *files = writer->params.files;
    writer->flushed_ns = now_ns;
    if (0 == writer->pending_count)
    {
        return;
    }
    if (is_open(writer))
    {
        const int error = asi_file_write_all(files, writer->fd, writer->pending,
            writer->pending_count * (int64_t)ASI_TIME_INDEX_ENTRY_LENGTH, asi_time_slot_offset(writer->next_slot));
        if (0 == error)
        {
            writer->next_slot += writer->pending_count;
        }
        else
        {
            note_failure(writer, error);
            files->ftruncate(files->context, writer->fd, asi_time_slot_offset(writer->next_slot)); /* keeps the slots in order */
        }
        if (writer->next_slot >= writer->next_give_back)
        {
            give_back(writer);
        }
    }
    writer->pending_count = 0;
}

static void close_run(asi_time_writer *writer, int64_t now_ns)
{
    if (writer->run.length > 0)
    {
        asi_time_run_encode(&writer->run, writer->params.recording_id, writer->next_slot + writer->pending_count,
            writer->pending + writer->pending_count * (int64_t)ASI_TIME_INDEX_ENTRY_LENGTH);
        writer->pending_count++;
        writer->run.length = 0;
    }
    if (PENDING_MAX == writer->pending_count || now_ns - writer->flushed_ns >= writer->params.interval_ns)
    {
        flush(writer, now_ns);
    }
}

void asi_time_writer_add(asi_time_writer *writer, int64_t position, int64_t length, int64_t now_ns)
{
    const asi_time_writer_params *params = &writer->params;
    if (params->is_off)
    {
        return;
    }
    now_ns = now_ns > writer->last_ns ? now_ns : writer->last_ns;
    writer->last_ns = now_ns;
    asi_time_run *run = &writer->run;
    const bool fits = now_ns - run->first_ns < params->interval_ns && run->length + length <= params->interval_bytes;
    if (run->length > 0 && !fits)
    {
        close_run(writer, now_ns);
    }
    if (0 == run->length)
    {
        *run = (asi_time_run){ .position = position, .first_ns = now_ns };
        (void)is_open(writer); /* readers of these bytes see by it that an entry comes */
    }
    run->length += length;
    run->last_ns = now_ns;
}

bool asi_time_writer_is_waiting(const asi_time_writer *writer) { return writer->run.length > 0 || writer->pending_count > 0; }

void asi_time_writer_idle(asi_time_writer *writer, int64_t now_ns)
{
    /* If the clock was set back, the wait must not be long. */
    const int64_t since = writer->run.length > 0 ? writer->run.first_ns : writer->flushed_ns;
    if (now_ns - since >= writer->params.interval_ns || now_ns < writer->last_ns)
    {
        close_run(writer, now_ns > writer->last_ns ? now_ns : writer->last_ns);
        flush(writer, now_ns);
    }
}

int asi_time_writer_close(asi_time_writer *writer)
{
    close_run(writer, writer->last_ns);
    flush(writer, writer->last_ns);
    if (writer->fd >= 0)
    {
        writer->params.files->close(writer->params.files->context, writer->fd);
    }
    const int failure = writer->failure;
    free(writer);
    return failure;
}
