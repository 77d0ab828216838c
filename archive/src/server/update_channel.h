/* Requests to change the channel of a recording. Spec: 08 §11. */
#ifndef ASI_SERVER_UPDATE_CHANNEL_H
#define ASI_SERVER_UPDATE_CHANNEL_H

#include "codec/request.h"
#include "server/archive.h"

void asi_update_channel(asi_control_session *session, const asi_codec_request *request);

#endif
