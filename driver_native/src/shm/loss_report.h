/* Loss report: how many bytes each stream has lost, for tools. Spec: 01 §9, 04 §19.
 *
 * A file of the driver's directory. Only the driver's conductor writes it; tools of any process read it. An entry is 40
 * bytes, then channel and source identity as length-prefixed texts; the next entry is at a multiple of 64. The observation
 * count is stored last (release) and makes an entry valid; readers stop at a count of 0. */
#ifndef ASI_SHM_LOSS_REPORT_H
#define ASI_SHM_LOSS_REPORT_H

#include "base/result.h"

#define ASI_LOSS_REPORT_FILE "loss-report.dat"

typedef struct asi_loss_report
{
    uint8_t *buffer; /* borrowed, zero at first; NULL: no report */
    int64_t length;
    int64_t next_offset;
} asi_loss_report;

typedef struct asi_loss_source
{
    int32_t session_id;
    int32_t stream_id;
    const char *channel;
    const char *source;
} asi_loss_source;

/* Offset of a new entry with this first observation; -1 if there is no space. */
int64_t asi_loss_report_add(asi_loss_report *report, const asi_loss_source *source, int64_t bytes_lost, int64_t now_ms);
/* Adds an observation to an entry. */
void asi_loss_report_observe(asi_loss_report *report, int64_t entry, int64_t bytes_lost, int64_t now_ms);

typedef struct asi_loss_entry
{
    int64_t observation_count;
    int64_t total_bytes_lost;
    int64_t first_observation_ms;
    int64_t last_observation_ms;
    int32_t session_id;
    int32_t stream_id;
    const char *channel; /* not terminated, in the file */
    const char *source;
    int64_t channel_length;
    int64_t source_length;
} asi_loss_entry;

/* Reads the entries of a report that another process writes, up to the first invalid one; returns their number. */
int64_t asi_loss_report_read_untrusted(
    const void *report, int64_t length, void (*on_entry)(const asi_loss_entry *entry, void *context), void *context);

#endif
