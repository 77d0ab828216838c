/* Publications that are recorded from their first message on. Spec: 08 §13. */
#include <string.h>

#include "client/archive_client.h"
#include "client/connect.h"

typedef as_result (*add_publication)(
    as_client *client, const char *channel, int32_t stream_id, as_publication **publication);

/* Records this session only; other publishers of the channel are not recorded. */
static as_result start_recording(as_archive_client *client, const as_publication_constants *constants)
{
    asi_uri_builder channel;
    int64_t subscription_id;
    const as_result result = asi_connect_put_session(constants->channel, constants->session_id, &channel);
    return AS_OK != result ? result : as_archive_client_start_recording(
        client, channel.text, constants->stream_id, AS_SOURCE_LOCAL, false, &subscription_id);
}

static as_result add_recorded(as_archive_client *client, add_publication add, const char *channel, int32_t stream_id,
    as_publication **publication)
{
    as_publication *added;
    as_result result = asi_archive_client_check(client);
    if (AS_OK == result)
    {
        result = add(asi_archive_client_session(client)->aeron, channel, stream_id, &added);
    }
    if (AS_OK != result)
    {
        return result;
    }
    as_publication_constants constants;
    as_publication_get_constants(added, &constants);
    /* Another handle of an existing publication is refused: earlier messages may be unrecorded. */
    result = constants.registration_id == constants.original_registration_id ? start_recording(client, &constants) :
        asi_fail(AS_E_USAGE, 0, "publication already added for channel=%s streamId=%d: record it with start_recording", channel,
            stream_id);
    if (AS_OK != result)
    {
        as_publication_close(added);
        return result;
    }
    *publication = added;
    return AS_OK;
}

as_result as_archive_client_add_recorded_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication)
{
    return add_recorded(client, as_client_add_publication, channel, stream_id, publication);
}

as_result as_archive_client_add_recorded_exclusive_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication)
{
    return add_recorded(client, as_client_add_exclusive_publication, channel, stream_id, publication);
}
