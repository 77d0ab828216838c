/* What records: subscriptions, and the active recordings that they feed. recordings.c, recordings_images.c and recording_slots.c work on
 * it, others read it. Thread rule: the conductor's, but the queues. */
#ifndef ASI_SERVER_RECORDING_H
#define ASI_SERVER_RECORDING_H

#include "record/recorder.h"
#include "server/archive.h"
#include "server/channel.h"
#include "server/uses.h"

typedef struct asi_recording_subscription
{
    struct asi_recording_subscription *next;
    as_archive *archive;
    as_subscription *subscription;   /* NULL once closed */
    int64_t id;                      /* registration id */
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t extend_recording_id;     /* AS_NULL_VALUE: each image starts a new recording */
    int32_t stream_id;
    /* Whoever needs the end of its recordings sets it; called before STOP is told. NULL: nobody. */
    void (*on_recording_end)(as_archive *archive, int64_t subscription_id, int64_t stop_position);
    bool auto_stop;
    bool is_listed;                  /* can be found and stopped */
    bool ends_with_last;             /* one of its recordings was stopped by id: it goes when the others have ended */
    bool is_network;                 /* its images come from sockets */
    bool had_session;                /* a recording of it has begun: before, it holds a slot for its first one */
    bool is_limit_told;              /* a stream with data waits for a slot, and the requester knows */
    int64_t empty_count;             /* recordings to which no data came, one forgotten a minute; see recordings_images.c */
    int64_t empty_ms;                /* when the last one was forgotten */
    int64_t recording_count;         /* active recordings fed by it */
    char *channel;                   /* owned: as requested */
    asi_channel stripped;
    asi_channel subscribed;          /* stripped, with the spy prefix if it has one */
    asi_channel key;
    as_image **images;               /* owned, retained: not recorded yet, oldest first; noted by the handler */
    int32_t image_count;
    int32_t image_capacity;
    bool has_new_image;
} asi_recording_subscription;

typedef struct asi_active_recording
{
    asi_record_session session;      /* first: the recorder hands this back */
    asi_use use;
    struct asi_active_recording *next;
    asi_recording_subscription *subscription;
    bool is_further_of_network;      /* not the first of its subscription, and of an image that came from a socket */
} asi_active_recording;

typedef struct asi_recordings
{
    asi_recording_subscription *subscriptions; /* listed and lingering ones, oldest first */
    asi_active_recording *active;
    int64_t images_ms;                   /* tick at which images that wait to be recorded were looked at */
    asi_recorder recorder;
    asi_intrusive_queue closed;          /* given back by the recorder */
} asi_recordings;

#endif
