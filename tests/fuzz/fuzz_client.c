/* What a client maps and hears of a hostile driver: broadcast events of any bytes, counters, its log buffers' headers and frames. */
#include "client/scripted.h"
#include "fuzz.h"

#define MAX_STEPS 64

static void ignore_error(void *context, as_result result, int32_t code, const char *text)
{
    (void)context;
    (void)result;
    (void)code;
    CHECK('\0' != text[0]);
}

static void ignore_image(void *context, as_subscription *subscription, as_image *image)
{
    (void)context;
    (void)subscription;
    (void)image;
}

static void ignore_publication_error(
    void *context, int64_t registration_id, int32_t session_id, int32_t stream_id, int32_t code, const char *text)
{
    (void)context;
    (void)registration_id;
    (void)session_id;
    (void)stream_id;
    (void)code;
    (void)text;
}

static void on_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    int64_t *sum = context;
    *sum += length > 0 ? data[0] + data[length - 1] : 0;
    *sum += header->position;
}

/* An event with texts where its layout has them: images that exist are named right half of the time. */
static void step_event(scripted *s, fuzz_input *input, int64_t subscription_id)
{
    const uint8_t kind = fuzz_u8(input);
    const int32_t type_id = ASI_RSP_ERROR + kind % 14;
    int64_t length;
    uint8_t *bytes = fuzz_take(input, fuzz_u16(input) % 1024, &length);
    if (0 != (kind & 0x80))
    {
        send_image(s, 100 + (kind & 3), length >= 8 ? asi_get_i64(bytes) : subscription_id, length > 0 ? bytes[0] : POSITION_COUNTER, s->log_path);
    }
    else
    {
        send_event(s, type_id, bytes, length);
    }
    free(bytes);
}

static void overwrite(fuzz_input *input, uint8_t *section, int64_t length)
{
    const int64_t at = fuzz_u16(input) % length;
    int64_t taken;
    uint8_t *bytes = fuzz_take(input, fuzz_u8(input), &taken);
    memcpy(section + at, bytes, (size_t)(taken < length - at ? taken : length - at));
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scripted s;
    fuzz_input input = { .at = data, .left = (int64_t)size };
    as_client_options options;
    as_publication *publication = NULL;
    as_subscription *subscription = NULL;
    int64_t sum = 0;
    scripted_create(&s);
    scripted_publish(&s);
    scripted_options(&s, &options);
    options.on_error = ignore_error;
    options.on_available_image = ignore_image;
    options.on_unavailable_image = ignore_image;
    options.on_publication_error = ignore_publication_error;
    const asi_clock clock = { .nano_time = scripted_nano_time, .epoch_ms = scripted_epoch_ms, .context = &s };
    CHECK_I64(asi_client_open_with_clock(&options, &clock, &s.client), AS_OK);
    CHECK_I64(as_client_add_publication(s.client, CHANNEL, STREAM, &publication), AS_OK);
    CHECK_I64(as_client_add_subscription(s.client, CHANNEL, STREAM, &subscription), AS_OK);
    const int64_t subscription_id = s.last_correlation_id;
    send_image(&s, 100, subscription_id, POSITION_COUNTER, s.log_path);
    scripted_run(&s, 1);
    for (int step = 0; step < MAX_STEPS && input.left > 0; step++)
    {
        switch (fuzz_u8(&input) % 5)
        {
            case 0: step_event(&s, &input, subscription_id); break;
            case 1: overwrite(&input, s.log.terms[0], 65536); break;
            case 2: overwrite(&input, (uint8_t *)s.log.metadata, sizeof(*s.log.metadata)); break;
            case 3: overwrite(&input, (uint8_t *)s.counters.counters.metadata, 16384); break;
            default: s.now_ns += fuzz_u16(&input) * 1000000LL; break;
        }
        scripted_run(&s, 1);
        (void)!as_subscription_poll(subscription, on_fragment, &sum, 10);
        (void)!as_publication_offer(publication, (const uint8_t *)"0123456789", 10);
    }
    scripted_close(&s);
    return 0;
}
