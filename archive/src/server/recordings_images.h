/* Turns images into recordings, and ends recordings. See recordings.h. */
#ifndef ASI_SERVER_RECORDINGS_IMAGES_H
#define ASI_SERVER_RECORDINGS_IMAGES_H

#include "server/recording.h"

/* Handles new images, and recordings that ended. */
int asi_recordings_step(as_archive *archive);
/* Stores stop positions unless the archive is aborting. The recorder must already be closed. */
void asi_recordings_close(as_archive *archive);

#endif
