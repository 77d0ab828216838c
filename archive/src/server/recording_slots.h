/* Who may be recorded: aeron.archive.max.concurrent.recordings, where requests and images ask for it. Spec: 08 §2.3, 11 A4.
 *
 * A slot is taken by each live recording, and by each open subscription that has had none yet: its first image always finds one, at once,
 * as clients wait for a recording's counter before they publish. Further images of a subscription need a free slot. One that finds none waits,
 * unread, so that its publisher is held back and nothing is lost; it is recorded from where it joined when a recording ends.
 *
 * Images of the network are anybody's: a SETUP of 40 bytes makes one, and sockets say nothing of who sent it. So a further one is recorded
 * before its first data only while few such recordings are there: aeron.spark.archive.recordings.unbegun.max of its subscription, where
 * those that ended empty count for a minute each, and half of all slots; else it waits for data. And the further ones of one address take
 * no more than aeron.spark.archive.recordings.source.max. Thread rule: the conductor's. */
#ifndef ASI_SERVER_RECORDING_SLOTS_H
#define ASI_SERVER_RECORDING_SLOTS_H

#include "server/archive.h"
#include "server/recording.h"

/* Whether another subscription may be accepted. */
bool asi_slots_has_free(const as_archive *archive);

typedef enum asi_slot
{
    ASI_SLOT_FREE,
    ASI_SLOT_AWAITS_DATA,  /* ask again when there may be some */
    ASI_SLOT_AWAITS_END    /* of another recording: there is data, `text` says what holds it back */
} asi_slot;

/* Whether an image that is not recorded yet may be. */
asi_slot asi_slots_for_image(as_archive *archive, asi_recording_subscription *subscription, const as_image *image,
    char *text, size_t capacity);
/* The recording has begun; it has ended. */
void asi_slots_on_start(as_archive *archive, asi_active_recording *recording);
void asi_slots_on_end(as_archive *archive, const asi_active_recording *recording);

#endif
