/* Decides which images may be recorded: enforces aeron.archive.max.concurrent.recordings for requests and images. Spec: 08 §2.3,
 * 11 A4.
 *
 * Each live recording uses a slot, and so does each open subscription that has had no recording yet. Its first image therefore
 * always finds a slot at once, because clients wait for a recording's counter before they publish. Further images of a
 * subscription need a free slot. An image that finds none waits unread, so that flow control holds back its publisher and
 * nothing is lost. When a recording ends, the image is recorded from the position where it joined.
 *
 * Any host can create network images: a SETUP of 40 bytes creates one, and sockets do not authenticate the sender. A further
 * network image is therefore recorded before its first data only while few such recordings exist. The limits are
 * aeron.spark.archive.recordings.unbegun.max per subscription, where each recording that ended empty counts for a minute, and
 * half of all slots. Otherwise the image waits for data. Further images of one address use at most
 * aeron.spark.archive.recordings.source.max slots. Thread rule: conductor only. */
#ifndef ASI_SERVER_RECORDING_SLOTS_H
#define ASI_SERVER_RECORDING_SLOTS_H

#include "server/archive.h"
#include "server/recording.h"

/* Whether another subscription may be accepted. */
bool asi_slots_has_free(const as_archive *archive);

typedef enum asi_slot
{
    ASI_SLOT_FREE,
    ASI_SLOT_AWAITS_DATA,  /* check again when the image may have data */
    ASI_SLOT_AWAITS_END    /* waits for the end of another recording: the image has data, and `text` names the limit */
} asi_slot;

/* Whether an image that is not recorded yet may be recorded. */
asi_slot asi_slots_for_image(as_archive *archive, asi_recording_subscription *subscription, const as_image *image,
    char *text, size_t capacity);
/* Report the begin and the end of a recording. */
void asi_slots_on_start(as_archive *archive, asi_active_recording *recording);
void asi_slots_on_end(as_archive *archive, const asi_active_recording *recording);

#endif
