/* Replications as requested by clients: copies of other archives' recordings. See replication.h. Spec: 08 §10. */
#ifndef ASI_SERVER_REPLICATIONS_H
#define ASI_SERVER_REPLICATIONS_H

#include "server/archive.h"

void asi_replications_start(asi_control_session *session, const asi_codec_request *request);
void asi_replications_stop(asi_control_session *session, const asi_codec_request *request);
int asi_replications_step(as_archive *archive);
/* Notifies each source that is still connected. To be called before the recordings' close. */
void asi_replications_close(as_archive *archive);

#endif
