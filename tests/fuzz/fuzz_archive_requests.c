/* Requests to a living archive: an input is a sequence of messages (two bytes of length, then the message), which the conductor
 * routes as if they had come on the control stream of a session that is there; ids of sessions are put in. The archive must go on
 * serving afterwards. One archive lives through many inputs, under a clock that is pushed after each, so that what nobody waits
 * for ends; it is made anew when it has collected too much. Channels over UDP are left out: they would leave the machine. */
#define _GNU_SOURCE /* memmem */
#include "archive/server_rig.h"
#include "fuzz.h"

#define RECORDINGS_MAX 50

static test_rig rig;
static raw_session *session;

static void end(void)
{
    raw_close(session);
    rig_close(&rig);
}

static void begin(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.connect.timeout", "1s");
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    raw_record(session, 1001, 100, 10);
    raw_forget(session);
}

/* Like on_message of on_request.c. */
static void deliver(const uint8_t *bytes, int64_t length, as_image *image)
{
    asi_request *request = malloc(sizeof(*request) + (size_t)length);
    CHECK(NULL != request);
    request->image = as_image_retain(image);
    request->length = length;
    memcpy(request->bytes, bytes, (size_t)length);
    const bool has_session = length >= 16 && ASI_CODEC_AUTH_CONNECT != asi_get_u16(bytes + 2);
    if (has_session && AS_NULL_VALUE != asi_get_i64(bytes + 8))
    {
        asi_put_i64(request->bytes + 8, session->id);
    }
    request->next = rig.archive->requests->first;
    if (NULL == rig.archive->requests->first)
    {
        rig.archive->requests->last = request;
    }
    rig.archive->requests->first = request;
}

static void turn(int times)
{
    for (int i = 0; i < times; i++)
    {
        rig_turn(&rig);
        raw_poll(session);
        raw_forget(session);
    }
}

static const asi_control_session *own_session(void)
{
    const asi_control_session *at = rig.archive->sessions->first;
    while (NULL != at && at->id != session->id)
    {
        at = at->next;
    }
    return at;
}

static bool is_serving(void)
{
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    return 42 == raw_ask_ok(session, &request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (NULL != memmem(data, size, "udp", 3))
    {
        return 0;
    }
    if (NULL == session)
    {
        begin();
        atexit(end);
    }
    fuzz_input input = { .at = data, .left = (int64_t)size };
    const asi_control_session *own = own_session();
    CHECK(NULL != own);
    as_image *image = as_image_retain(own->image);
    while (input.left > 0)
    {
        int64_t length;
        const int64_t wanted = fuzz_u16(&input);
        uint8_t *bytes = fuzz_take(&input, wanted, &length);
        const bool is_close = length >= 4 && ASI_CODEC_CLOSE_SESSION == asi_get_u16(bytes + 2);
        if (!is_close)
        {
            deliver(bytes, length, image);
            turn(2);
        }
        free(bytes);
    }
    as_image_release(image);
    turn(5);
    rig.clock_ahead_ns += 2 * RIG_SECOND;
    turn(5);
    own = own_session();
    const bool is_over = NULL == own || ASI_CONTROL_ACTIVE != own->state; /* given up with another that shared its image */
    if (is_over || rig.archive->uses->count[ASI_USE_RECORDS] + rig.archive->uses->count[ASI_USE_REPLAYS] > RECORDINGS_MAX)
    {
        end();
        begin();
    }
    CHECK(is_serving());
    return 0;
}
