/* Settings of the archive, with the stock names. Spec: 05 §13.2, 06 §11, 07 §5.
 *
 * The owner of an archive opens the settings; server.c and main.c read them. as_archive_open copies them, so they may be closed
 * afterwards. Every setting is one row of the table in config.c. A value is checked when it is set; asi_archive_config_check
 * checks relations between settings. Thread rule: one owner. */
#ifndef ASI_SERVER_CONFIG_H
#define ASI_SERVER_CONFIG_H

#include "aeron_spark/as_archive.h"
#include "base/console.h"
#include "base/idle.h"
#include "shm/error_log.h"

typedef enum asi_archive_threading
{
    ASI_ARCHIVE_DEDICATED,
    ASI_ARCHIVE_SHARED,
    ASI_ARCHIVE_INVOKER
} asi_archive_threading;

typedef enum asi_authenticator
{
    ASI_AUTHENTICATOR_UNSET,        /* the default, unless a credentials file or a plug-in is set */
    ASI_AUTHENTICATOR_DEFAULT       /* set by name: accepts everybody */
} asi_authenticator;

typedef enum asi_authorisation
{
    ASI_AUTHORISATION_UNSET,        /* the authenticator decides */
    ASI_AUTHORISATION_ALLOW_ALL,
    ASI_AUTHORISATION_DENY_ALL
} asi_authorisation;

#define ASI_ARCHIVE_SYMBOL_CAPACITY 128
#define ASI_ARCHIVE_CHANNEL_CAPACITY (AS_CHANNEL_MAX_LENGTH + 1)

struct as_archive_config
{
    char aeron_dir[AS_PATH_MAX];   /* "": the default directory */
    char dir_owner[64];            /* of the driver's directory, see base/trust.h; also the next field */
    char dir_writers[16];
    char archive_dir[AS_PATH_MAX];
    char mark_dir[AS_PATH_MAX];    /* "": the archive's own */
    char control_channel[ASI_ARCHIVE_CHANNEL_CAPACITY]; /* "": none */
    char local_control_channel[ASI_ARCHIVE_CHANNEL_CAPACITY];
    char events_channel[ASI_ARCHIVE_CHANNEL_CAPACITY];
    char replication_channel[ASI_ARCHIVE_CHANNEL_CAPACITY]; /* "": requests must name one */
    char control_response_channel[ASI_ARCHIVE_CHANNEL_CAPACITY]; /* of replications; "": derived from the control channel */
    bool delete_dir_on_start;
    bool control_channel_enabled;
    bool control_term_sparse;
    bool events_enabled;
    char credentials_file[AS_PATH_MAX]; /* "": none */
    char auth_library[AS_PATH_MAX];     /* "": none */
    char auth_symbol[ASI_ARCHIVE_SYMBOL_CAPACITY];
    char auth_argument[AS_PATH_MAX];
    int64_t authenticator;         /* asi_authenticator */
    int64_t authorisation;         /* asi_authorisation */
    int64_t archive_id;            /* AS_NULL_VALUE: that of the Aeron client */
    int64_t threading;             /* asi_archive_threading */
    bool has_new_thread_names;     /* Spec: 11 T3 */
    int64_t driver_timeout_ms;
    int64_t segment_file_length;
    int64_t retain_older_than_ns;  /* 0: no bound; also for the next two */
    int64_t retain_max_bytes;
    int64_t retain_keep_recordings;
    int64_t retain_interval_ns;
    int64_t low_storage_threshold;
    int64_t low_storage_warning;   /* usable bytes at which a warning is logged; 0: only at the threshold */
    int64_t file_sync_level;
    int64_t catalog_file_sync_level; /* AS_NULL_VALUE: as file_sync_level */
    int64_t file_io_max_length;
    int64_t catalog_capacity;
    int64_t catalog_compaction_threshold; /* bytes that compaction would free; 0: never compacts */
    int64_t error_buffer_length;
    int64_t max_concurrent_recordings;
    int64_t unbegun_recordings_max; /* of one subscription; see recording_slots.h; also for the next field */
    int64_t source_recordings_max;  /* 0: by logins */
    int64_t max_concurrent_replays;
    int64_t max_control_sessions;
    int64_t max_undecided_sessions; /* of one source */
    int64_t response_term_length_max;
    bool response_anywhere;
    int64_t connect_timeout_ns;
    int64_t session_liveness_check_ns;
    int64_t replay_linger_ns;
    int64_t exit_when_idle_ns;     /* 0: never */
    asi_log_format log_format;     /* of the executable; also the next field */
    asi_log_level log_level;
    bool time_index;
    int64_t time_index_interval_ns;
    int64_t time_index_bytes;
    int64_t conductor_threshold_ns;
    int64_t recorder_threshold_ns;
    int64_t replayer_threshold_ns;
    int64_t control_stream_id;
    int64_t local_control_stream_id;
    int64_t events_stream_id;
    int64_t control_response_stream_id;
    int64_t message_timeout_ns;    /* for requests to the sources of replications */
    int64_t control_term_length;
    int64_t control_mtu;
    int64_t record_checksum;       /* as_record_checksum, never AUTO */
    int64_t replay_checksum;
    asi_idle conductor_idle;
    asi_idle recorder_idle;        /* the conductor's unless set */
    asi_idle replayer_idle;
    bool has_recorder_idle;
    bool has_replayer_idle;
    asi_error_sink error_sink;     /* not a setting: set by the owner */
};

/* Checks relations between settings. AS_E_USAGE names both settings and the remedy. Fills settings that depend on others
 * (catalog_file_sync_level, idle strategies, aeron_dir). */
as_result asi_archive_config_check(as_archive_config *config) AS_MUST_USE;
typedef void (*asi_on_changed_setting)(void *context, const char *name, const char *value);
/* Reports each setting that differs from its default. What may be a secret, or has no short form, has the value "...". */
void asi_archive_config_changed(const as_archive_config *config, asi_on_changed_setting on_changed, void *context);

#endif
