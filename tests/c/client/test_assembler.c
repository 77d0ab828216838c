/* Goal: fragments become their message, or nothing, and nothing is kept of images that have closed. Method: a table of scripts,
 * each a row of fragments of two sessions and the expected deliveries, through both assemblers; images that the test makes and
 * closes itself. No driver. */
#include "check.h"

#include "aeron_spark/as_client.h"
#include "base/bits.h"
#include "client/image.h"
#include "wire/frame.h"

typedef struct fragment
{
    char session;          /* 'a' or 'b', 0 ends the script */
    const char *flags;     /* any of B, E */
    int32_t term_offset;
    const char *text;
    int32_t term_id;
} fragment;

typedef struct row
{
    const char *name;
    fragment fragments[8];
    const char *delivered; /* "<session>:<text>@<position>;" of each message */
} row;

/* Each fragment but an empty one occupies 64 bytes; position of a fragment = its term offset + 64. */
static const row ROWS[] = {
    { "whole", { { 'a', "BE", 0, "hello" } }, "a:hello@64;" },
    { "two fragments", { { 'a', "B", 0, "he" }, { 'a', "E", 64, "llo" } }, "a:hello@128;" },
    { "three fragments", { { 'a', "B", 0, "h" }, { 'a', "", 64, "el" }, { 'a', "E", 128, "lo" } }, "a:hello@192;" },
    { "empty parts", { { 'a', "B", 0, "" }, { 'a', "E", 32, "" } }, "a:@96;" },
    { "start in the middle", { { 'a', "", 64, "x" }, { 'a', "E", 128, "y" }, { 'a', "BE", 192, "z" } }, "a:z@256;" },
    { "gap", { { 'a', "B", 0, "x" }, { 'a', "E", 128, "y" }, { 'a', "BE", 192, "z" } }, "a:z@256;" },
    { "gap drops the rest too", { { 'a', "B", 0, "x" }, { 'a', "", 128, "y" }, { 'a', "E", 192, "y" } }, "" },
    { "begin again", { { 'a', "B", 0, "x" }, { 'a', "B", 64, "he" }, { 'a', "E", 128, "llo" } }, "a:hello@192;" },
    { "sessions in turn", { { 'a', "B", 0, "he" }, { 'b', "B", 0, "wor" }, { 'a', "E", 64, "llo" }, { 'b', "E", 64, "ld" } },
        "a:hello@128;b:world@128;" },
    { "whole one between", { { 'a', "B", 0, "he" }, { 'b', "BE", 0, "w" }, { 'a', "E", 64, "llo" } }, "b:w@64;a:hello@128;" },
    { "the next term's end", { { 'a', "B", 0, "he" }, { 'a', "E", 64, "llo", 1 } }, "" },
    { "end twice", { { 'a', "B", 0, "he" }, { 'a', "E", 64, "llo" }, { 'a', "E", 128, "x" } }, "a:hello@128;" },
    { "unblocked in between", { { 'a', "B", 0, "he" }, { 'a', "BE", 128, "w" }, { 'a', "E", 64, "llo" } },
        "a:w@192;a:hello@128;" }, /* a whole message leaves the builder alone */
};

typedef struct log_text
{
    char text[256];
    int64_t aborts; /* deliveries still to abort */
} log_text;

static void note(log_text *log, const uint8_t *data, int64_t length, const as_header *header)
{
    const size_t used = strlen(log->text);
    snprintf(log->text + used, sizeof(log->text) - used, "%c:%.*s@%" PRId64 ";", header->session_id, (int)length,
        (const char *)data, header->position);
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)header->frame;
    CHECK_I64(header->flags, 0xC0);
    CHECK_I64(frame->flags, 0xC0);
    CHECK_I64(frame->frame_length, length + 32);
    CHECK_I64(frame->term_offset, header->term_offset);
    CHECK_I64(header->reserved_value, header->term_offset + 7);
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    note(context, data, length, header);
}

static as_action on_controlled(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    log_text *log = context;
    if (log->aborts > 0)
    {
        log->aborts--;
        return AS_ACTION_ABORT;
    }
    note(log, data, length, header);
    return AS_ACTION_COMMIT;
}

/* The fragment as a poll would hand it out; payload 32 bytes at most, so that every one occupies 64. */
static as_header make_fragment(const fragment *f, uint8_t *bytes)
{
    const int64_t length = (int64_t)strlen(f->text);
    const uint8_t flags = (uint8_t)((NULL != strchr(f->flags, 'B') ? 0x80 : 0) | (NULL != strchr(f->flags, 'E') ? 0x40 : 0));
    const asi_frame_header frame = { .frame_length = (int32_t)length + 32, .flags = flags, .type = ASI_FRAME_DATA,
        .term_offset = f->term_offset, .session_id = f->session };
    memcpy(bytes, &frame, sizeof(frame));
    memcpy(bytes + 32, f->text, (size_t)length);
    return (as_header){ .frame = bytes, .position = f->term_offset + 64, .reserved_value = f->term_offset + 7,
        .session_id = f->session, .term_id = f->term_id, .term_offset = f->term_offset, .flags = flags };
}

/* The term offset that continues is computed from the length, so texts are padded to more than 0 and at most 32 bytes. */
static int64_t payload_length(const fragment *f)
{
    return (int64_t)strlen(f->text);
}

static void table(void)
{
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const row *r = &ROWS[i];
        log_text plain = { 0 };
        log_text controlled = { .aborts = 1 };
        as_fragment_assembler *assembler;
        as_controlled_assembler *controlled_assembler;
        CHECK_I64(as_fragment_assembler_open(on_message, &plain, &assembler), AS_OK);
        CHECK_I64(as_controlled_assembler_open(on_controlled, &controlled, &controlled_assembler), AS_OK);
        for (const fragment *f = r->fragments; 0 != f->session; f++)
        {
            uint8_t bytes[64] = { 0 };
            const as_header header = make_fragment(f, bytes);
            as_fragment_assembler_on_fragment(assembler, bytes + 32, payload_length(f), &header);
            /* As a controlled poll does: an aborted fragment is delivered again. */
            while (AS_ACTION_ABORT ==
                as_controlled_assembler_on_fragment(controlled_assembler, bytes + 32, payload_length(f), &header))
            {
            }
        }
        if (0 != strcmp(plain.text, r->delivered) || 0 != strcmp(controlled.text, r->delivered))
        {
            fprintf(stderr, "%s: delivered '%s' and '%s', expected '%s'\n", r->name, plain.text, controlled.text, r->delivered);
            exit(1);
        }
        as_fragment_assembler_close(assembler);
        as_controlled_assembler_close(controlled_assembler);
    }
}

static int64_t total_length;

static void on_total(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)header;
    for (int64_t i = 0; i < length; i++)
    {
        CHECK(data[i] == (uint8_t)(i / 1024));
    }
    total_length += length;
}

static void long_message_of_many_sessions(void)
{
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_total, NULL, &assembler), AS_OK);
    uint8_t bytes[32 + 1024];
    for (int32_t part = 0; part < 100; part++)
    {
        for (int32_t session = 50; session > -50; session--)
        {
            memset(bytes + 32, (uint8_t)part, 1024);
            const as_header header = { .frame = bytes, .session_id = session * 77, .term_offset = part * 1056,
                .flags = (uint8_t)(0 == part ? 0x80 : 99 == part ? 0x40 : 0) };
            as_fragment_assembler_on_fragment(assembler, bytes + 32, 1024, &header);
        }
    }
    CHECK_I64(total_length, 100 * 100 * 1024);
    as_fragment_assembler_close(assembler);
    as_fragment_assembler_close(NULL);
    as_controlled_assembler_close(NULL);
    as_controlled_assembler *controlled;
    CHECK_I64(as_fragment_assembler_open(NULL, NULL, &assembler), AS_E_USAGE);
    CHECK_I64(as_controlled_assembler_open(NULL, NULL, &controlled), AS_E_USAGE);
}

/* -- images ------------------------------------------------------------------------------------------------------------ */

#define IMAGES 100

typedef struct delivery
{
    int64_t count;
    int64_t length;
    const as_image *image;
    uint8_t first;
    uint8_t last;
} delivery;

static void on_delivery(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    delivery *to = context;
    *to = (delivery){ .count = to->count + 1, .length = length, .image = header->image, .first = data[0], .last = data[length - 1] };
}

static as_action on_controlled_delivery(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    on_delivery(context, data, length, header);
    return AS_ACTION_CONTINUE;
}

/* The test watches it, too, so it is still there when the assembler has left it. */
static as_image *make_image(int32_t term_length)
{
    as_image *image = calloc(1, sizeof(*image));
    CHECK(NULL != image);
    image->watch_count = 1;
    image->session_id = 7;
    image->term_length = term_length;
    return image;
}

static as_header part_of(as_image *image, int32_t term_offset, uint8_t flags)
{
    static const uint8_t frame[32];
    return (as_header){ .frame = frame, .session_id = image->session_id, .term_offset = term_offset, .flags = flags, .image = image };
}

static bool is_left(const as_image *image) { return 1 == asi_load_acquire_i32(&image->watch_count); }

/* One assembler may serve subscriptions of two channels, and a publisher chooses its session id. */
static void two_images_of_one_session(void)
{
    delivery got = { 0 };
    as_image *images[2] = { make_image(65536), make_image(65536) };
    if (images[0] < images[1]) /* whichever the order is, the second one finds the builder of the first before its place */
    {
        as_image *lower = images[0];
        images[0] = images[1];
        images[1] = lower;
    }
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_delivery, &got, &assembler), AS_OK);
    for (int i = 0; i < 2; i++)
    {
        const as_header begin = part_of(images[i], 0, 0x80);
        as_fragment_assembler_on_fragment(assembler, (const uint8_t *)(0 == i ? "a" : "b"), 1, &begin);
    }
    for (int i = 0; i < 2; i++)
    {
        const as_header end = part_of(images[i], 64, 0x40);
        as_fragment_assembler_on_fragment(assembler, (const uint8_t *)(0 == i ? "A" : "B"), 1, &end);
        CHECK_I64(got.count, i + 1);
        CHECK(got.image == images[i]);
        CHECK_I64(got.first, 0 == i ? 'a' : 'b');
        CHECK_I64(got.last, 0 == i ? 'A' : 'B');
    }
    const as_header middle = part_of(images[0], 0, 0x80);
    as_fragment_assembler_on_fragment(assembler, (const uint8_t *)"a", 1, &middle);
    const as_header others = part_of(images[1], 64, 0x40);
    as_fragment_assembler_on_fragment(assembler, (const uint8_t *)"B", 1, &others);
    CHECK_I64(got.count, 2); /* the other image has begun nothing */
    as_fragment_assembler_close(assembler);
    for (int i = 0; i < 2; i++)
    {
        CHECK(is_left(images[i]));
        asi_client_image_unwatch(images[i]);
    }
}

/* Publishers that come and go, each inside a message, and some that stay. */
static void closed_images_leave_nothing(void)
{
    delivery got = { 0 };
    as_image *images[IMAGES];
    as_controlled_assembler *assembler;
    CHECK_I64(as_controlled_assembler_open(on_controlled_delivery, &got, &assembler), AS_OK);
    int64_t kept = 0;
    for (int32_t i = 0; i < IMAGES; i++)
    {
        images[i] = make_image(65536);
        const as_header begin = part_of(images[i], 0, 0x80);
        CHECK_I64(as_controlled_assembler_on_fragment(assembler, (const uint8_t *)"x", 1, &begin), AS_ACTION_CONTINUE);
        asi_store_release_bool(&images[i]->is_closed, 0 != i % 10);
    }
    for (int32_t i = 0; i < IMAGES; i++)
    {
        kept += is_left(images[i]) ? 0 : 1;
    }
    CHECK(kept <= 2 * IMAGES / 10 + 2); /* the open ones, and at most as many on which no look has fallen yet */
    for (int32_t i = 0; i < IMAGES; i++)
    {
        const as_header begin = part_of(images[0], 64 * i, 0x80);
        CHECK_I64(as_controlled_assembler_on_fragment(assembler, (const uint8_t *)"y", 1, &begin), AS_ACTION_CONTINUE);
    }
    for (int32_t i = 0; i < IMAGES; i++)
    {
        CHECK_I64(is_left(images[i]), 0 != i % 10);
        const as_header end = part_of(images[i], 0 == i ? 64 * IMAGES : 64, 0x40);
        CHECK_I64(as_controlled_assembler_on_fragment(assembler, (const uint8_t *)"z", 1, &end), AS_ACTION_CONTINUE);
    }
    CHECK_I64(got.count, IMAGES / 10); /* those that stayed end their messages */
    as_controlled_assembler_close(assembler);
    for (int32_t i = 0; i < IMAGES; i++)
    {
        CHECK(is_left(images[i]));
        asi_client_image_unwatch(images[i]);
    }
}

/* Gathers a message of that length in parts of at most 1024 bytes. */
static void gather(as_fragment_assembler *assembler, as_image *image, int64_t length)
{
    static const uint8_t bytes[1024] = { 1 };
    for (int64_t at = 0; at < length; at += 1024)
    {
        const int64_t part = length - at < 1024 ? length - at : 1024;
        const as_header header =
            part_of(image, (int32_t)(at / 1024 * 1056), (uint8_t)((0 == at ? 0x80 : 0) | (at + part == length ? 0x40 : 0)));
        as_fragment_assembler_on_fragment(assembler, bytes, part, &header);
    }
}

static void messages_that_are_too_long(void)
{
    delivery got = { 0 };
    as_image *image = make_image(65536);
    as_image *larger = make_image(AS_TERM_MAX_LENGTH);
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_delivery, &got, &assembler), AS_OK);
    gather(assembler, image, 65536 / 8);
    CHECK_I64(got.length, 65536 / 8);
    gather(assembler, image, 65536 / 8 + 1); /* no publication sends it */
    CHECK_I64(got.count, 1);
    gather(assembler, larger, AS_MESSAGE_MAX_LENGTH);
    CHECK_I64(got.length, AS_MESSAGE_MAX_LENGTH);
    gather(assembler, larger, AS_MESSAGE_MAX_LENGTH + 1);
    CHECK_I64(got.count, 2);
    as_fragment_assembler_set_max_length(assembler, 5000);
    gather(assembler, larger, 5001);
    CHECK_I64(got.count, 2);
    gather(assembler, larger, 5000);
    CHECK_I64(got.length, 5000);
    as_fragment_assembler_close(assembler);
    asi_client_image_unwatch(image);
    asi_client_image_unwatch(larger);
}

int main(void)
{
    RUN(table);
    RUN(long_message_of_many_sessions);
    RUN(two_images_of_one_session);
    RUN(closed_images_leave_nothing);
    RUN(messages_that_are_too_long);
    return 0;
}
