/* From an image to a recording, and its end. See recordings.h. */
#ifndef ASI_SERVER_RECORDINGS_IMAGES_H
#define ASI_SERVER_RECORDINGS_IMAGES_H

#include "server/recording.h"

/* New images, and recordings that ended. */
int asi_recordings_step(as_archive *archive);
/* The recorder must have been closed. Stores stop positions unless the archive is aborting. */
void asi_recordings_close(as_archive *archive);

#endif
