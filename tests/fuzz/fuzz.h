/* What fuzz targets share: an input is read front to back as numbers and stretches of bytes; what is not there reads as zero.
 * A target defines LLVMFuzzerTestOneInput in fuzz_<name>.c; its corpus is tests/fuzz/corpus/<name>/. The same file is linked with
 * libFuzzer (make fuzz) and with replay.c, which runs it over the corpus in `make test`. */
#ifndef AS_TESTS_FUZZ_FUZZ_H
#define AS_TESTS_FUZZ_FUZZ_H

#include "support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_input
{
    const uint8_t *at;
    int64_t left;
} fuzz_input;

/* `length` bytes or what is left of them, in a heap block of exactly that size: who reads past it is found. Free it. */
static inline uint8_t *fuzz_take(fuzz_input *input, int64_t length, int64_t *taken)
{
    *taken = length < input->left ? length : input->left;
    uint8_t *block = malloc(0 == *taken ? 1 : (size_t)*taken);
    CHECK(NULL != block);
    memcpy(block, input->at, (size_t)*taken);
    input->at += *taken;
    input->left -= *taken;
    return block;
}

static inline uint64_t fuzz_number(fuzz_input *input, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes && input->left > 0; i++)
    {
        value |= (uint64_t)*input->at++ << (8 * i);
        input->left--;
    }
    return value;
}

static inline uint8_t fuzz_u8(fuzz_input *input) { return (uint8_t)fuzz_number(input, 1); }
static inline uint16_t fuzz_u16(fuzz_input *input) { return (uint16_t)fuzz_number(input, 2); }

/* The rest as terminated text; free it. */
static inline char *fuzz_text(const uint8_t *bytes, int64_t length)
{
    char *text = malloc((size_t)length + 1);
    CHECK(NULL != text);
    memcpy(text, bytes, (size_t)length);
    text[length] = '\0';
    return text;
}

#endif
