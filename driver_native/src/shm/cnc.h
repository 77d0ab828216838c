/* cnc.dat, the command-and-control file: layout, version handshake, driver liveness. Spec: 01 §1.4, §2.
 *
 * The driver creates it; clients and tools map it. The version field is stored last with release. A reader that loads it
 * non-zero with acquire sees the rest of the header. Readers use the lengths in the header, never defaults. */
#ifndef ASI_SHM_CNC_H
#define ASI_SHM_CNC_H

#include "base/assert.h"
#include "base/clock.h"
#include "base/map.h"

#define ASI_CNC_FILE "cnc.dat"
#define ASI_CNC_VERSION 0x0200 /* 0.2.0 */
#define ASI_CNC_HEADER_LENGTH 128

typedef struct asi_cnc_lengths
{
    int32_t to_driver;         /* trailers included */
    int32_t to_clients;
    int32_t counters_metadata; /* 4 x values */
    int32_t counters_values;
    int32_t error_log;
} asi_cnc_lengths;

typedef struct asi_cnc
{
    asi_map map; /* owned */
    asi_cnc_lengths lengths;
    uint8_t *to_driver; /* borrowed from map, like the following pointers */
    uint8_t *to_clients;
    uint8_t *counters_metadata;
    uint8_t *counters_values;
    uint8_t *error_log;
    int64_t client_liveness_timeout_ns;
    int64_t start_timestamp_ms;
    int64_t pid;
    int32_t version;
    int32_t file_page_size;
} asi_cnc;

typedef struct asi_cnc_params
{
    asi_cnc_lengths lengths;
    int64_t client_liveness_timeout_ns;
    int64_t start_timestamp_ms;
    int64_t pid;
    int32_t file_page_size;
} asi_cnc_params;

/* -1 if the lengths are out of range or their sum exceeds INT32_MAX. */
int64_t asi_cnc_file_length(const asi_cnc_lengths *lengths, int32_t file_page_size);
/* Driver: creates <dir>/cnc.dat with every header field except the version. */
as_result asi_cnc_create(asi_cnc *cnc, const char *aeron_dir, const asi_cnc_params *params) AS_MUST_USE;
/* Driver: stores the version (release) and syncs. Clients can use the file from then on. */
void asi_cnc_publish(asi_cnc *cnc);
/* Maps <dir>/cnc.dat once, without waiting. AS_AGAIN: the file is absent, too short, or its version is still 0 (a driver may
 * be starting). AS_E_DATA: another major version, or lengths that do not fit the file; the text names the driver that created
 * it. */
as_result asi_cnc_open_untrusted(asi_cnc *cnc, const char *aeron_dir) AS_MUST_USE;
/* As asi_cnc_open_untrusted, but also checks the owners and modes of directory and file. AS_E_USAGE with the reason if they
   are not trusted. */
as_result asi_cnc_open_own_untrusted(asi_cnc *cnc, const char *aeron_dir, const asi_trust *trust) AS_MUST_USE;
/* As asi_cnc_open_untrusted, for readers that may lack write permission. Do not store through its pointers. */
as_result asi_cnc_open_read_only_untrusted(asi_cnc *cnc, const char *aeron_dir) AS_MUST_USE;
/* True if the file that was opened is still the one in `aeron_dir`: no other driver has started there. */
bool asi_cnc_is_at(const asi_cnc *cnc, const char *aeron_dir);
void asi_cnc_close(asi_cnc *cnc);
/* Epoch ms of the driver's last heartbeat; -1 closed, 0 not started. */
int64_t asi_cnc_driver_heartbeat(const asi_cnc *cnc);
/* Checks whether a driver is alive in that directory: its heartbeat is no older than the timeout. *is_active is false for an
 * absent, foreign or uninitialised file (after waiting up to the timeout for its version, Spec: 01 §1.4). */
as_result asi_cnc_is_driver_active(const char *aeron_dir, int64_t driver_timeout_ms, const asi_clock *clock, bool *is_active)
    AS_MUST_USE;

#endif
