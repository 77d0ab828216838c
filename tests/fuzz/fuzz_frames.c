/* The checks of unchecked datagrams: what they accept can be read in full by whoever comes next. */
#include "fuzz.h"
#include "wire/frame_check.h"

static void use_accepted(const uint8_t *bytes, int64_t length)
{
    const uint16_t type = ((const asi_frame_prefix *)(const void *)bytes)->type;
    if (ASI_FRAME_DATA == type || ASI_FRAME_PAD == type)
    {
        const int64_t extent = asi_data_extent_untrusted(bytes, length);
        CHECK(extent < 0 || extent >= length);
        (void)asi_is_heartbeat(bytes, length);
    }
    if (ASI_FRAME_ERROR == type)
    {
        const int32_t text_length = ((const asi_error_frame *)(const void *)bytes)->error_length;
        CHECK(text_length >= 0 && text_length <= length - (int64_t)sizeof(asi_error_frame) &&
            text_length <= ASI_ERROR_TEXT_MAX_LENGTH);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    int64_t length;
    uint8_t *bytes = fuzz_take(&input, input.left, &length); /* aligned, and not a byte more */
    if (ASI_DATAGRAM_ACCEPTED == asi_check_data_datagram_untrusted(bytes, length))
    {
        use_accepted(bytes, length);
    }
    if (ASI_DATAGRAM_ACCEPTED == asi_check_control_datagram_untrusted(bytes, length))
    {
        use_accepted(bytes, length);
    }
    free(bytes);
    return 0;
}
