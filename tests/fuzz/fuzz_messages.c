/* Messages of the archive's control protocol, both ways: what decodes can be encoded again, and has its texts inside. */
#include "codec/event.h"
#include "codec/request.h"
#include "fuzz.h"

static void read_var(const asi_codec_var *var, int64_t *sum)
{
    for (int64_t i = 0; i < var->length; i++)
    {
        *sum += ((const uint8_t *)var->data)[i];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[1 << 20];
    fuzz_input input = { .at = data, .left = (int64_t)size };
    int64_t length;
    int64_t encoded;
    int64_t sum = 0;
    uint8_t *bytes = fuzz_take(&input, input.left, &length);
    asi_codec_request request;
    asi_codec_event event;
    if (AS_OK == asi_codec_request_decode_untrusted(bytes, length, &request))
    {
        read_var(&request.channel, &sum);
        read_var(&request.encoded_credentials, &sum);
        read_var(&request.client_info, &sum);
        read_var(&request.live_destination, &sum);
        read_var(&request.replication_channel, &sum);
        read_var(&request.src_response_channel, &sum);
        CHECK_I64(asi_codec_request_encode(&request, again, sizeof(again), &encoded), AS_OK);
    }
    if (AS_OK == asi_codec_event_decode_untrusted(bytes, length, &event))
    {
        read_var(&event.error_message, &sum);
        read_var(&event.encoded_challenge, &sum);
        read_var(&event.stripped_channel, &sum);
        read_var(&event.original_channel, &sum);
        read_var(&event.source_identity, &sum);
        CHECK_I64(asi_codec_event_encode(&event, again, sizeof(again), &encoded), AS_OK);
    }
    free(bytes);
    return 0;
}
