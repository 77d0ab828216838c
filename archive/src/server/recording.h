/* State of recordings: subscriptions, and the active recordings that they feed. recordings.c, recordings_images.c and
 * recording_slots.c modify it, other files read it. Thread rule: conductor only, except the queues. */
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
    /* Set by a caller that needs the end of the subscription's recordings; called before STOP is signalled. NULL: not set. */
    void (*on_recording_end)(as_archive *archive, int64_t subscription_id, int64_t stop_position);
    bool auto_stop;
    bool is_listed;                  /* can be found and stopped */
    bool ends_with_last;             /* one of its recordings was stopped by id: removed when the others have ended */
    bool is_network;                 /* its images come from sockets */
    bool had_session;                /* one of its recordings has begun; until then it holds a slot for its first one */
    bool is_limit_told;              /* a stream with data waits for a slot, and the requester was notified */
    int64_t empty_count;             /* recordings that received no data, reduced by one per minute; see recordings_images.c */
    int64_t empty_ms;                /* time of the last reduction */
    int64_t recording_count;         /* number of active recordings of this subscription */
    char *channel;                   /* owned: as requested */
    asi_channel stripped;
    asi_channel subscribed;          /* stripped, with the spy prefix if it has one */
    asi_channel key;
    as_image **images;               /* owned, retained: images not recorded yet, oldest first; added by the handler */
    int32_t image_count;
    int32_t image_capacity;
    bool has_new_image;
} asi_recording_subscription;

typedef struct asi_active_recording
{
    asi_record_session session;      /* first: the recorder returns this pointer */
    asi_use use;
    struct asi_active_recording *next;
    asi_recording_subscription *subscription;
    bool is_further_of_network;      /* not the first recording of its subscription, and its image came from a socket */
} asi_active_recording;

typedef struct asi_recordings
{
    asi_recording_subscription *subscriptions; /* listed and lingering subscriptions, oldest first */
    asi_active_recording *active;
    int64_t images_ms;                   /* tick of the last check of images that wait to be recorded */
    asi_recorder recorder;
    asi_intrusive_queue closed;          /* filled by the recorder */
} asi_recordings;

#endif
