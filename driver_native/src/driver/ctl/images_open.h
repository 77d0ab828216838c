/* Creates an image from a SETUP, and frees it. Spec: 04 §8.4, 03 §9. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_IMAGES_OPEN_H
#define ASI_DRIVER_CTL_IMAGES_OPEN_H

#include "driver/ctl/images.h"
#include "driver/ctl/state.h"

/* Handles the receiver's command. Logs a failure and notifies the receiver, so that a later SETUP tries again. */
void asi_network_image_create(asi_conductor *conductor, const asi_command_create_image *setup);
void asi_network_image_close(asi_conductor *conductor, asi_network_image *image);

#endif
