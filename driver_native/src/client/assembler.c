/* Joins fragments to whole messages, with one builder per image. Spec: 02 §10.4.
 *
 * Departure from Spec: 02 §10.4, which has one per session - a subscription may have two images of a session, and one assembler
 * may serve two subscriptions, so bytes of one publisher would end in the message of another. Fragments without an image are
 * joined by session.
 *
 * A message of one frame is passed on in place, as it lies in the log. For a fragmented message the builder keeps the first
 * header and the payload until END. A fragment that does not continue where the last one ended discards what was gathered.
 * Causes are a start inside a message, a gap, or padding from the driver's unblocking.
 *
 * A builder watches its image instead of retaining it, so that the log of an image that closed inside a message is unmapped.
 * Each first fragment looks at two builders in turn and frees those of closed images: faster than builders are added, so there
 * are at most about twice as many as images were open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_client.h"
#include "base/result.h"
#include "client/image.h"
#include "shm/log_layout.h"
#include "wire/frame.h"

#define MIN_CAPACITY 4096
#define LOOKS_PER_MESSAGE 2

typedef struct message_builder
{
    as_image *image;         /* watched; NULL: the fragments have none */
    int32_t session_id;
    int64_t expected_offset; /* term offset of the fragment that continues the message; -1: no message is being built */
    int64_t length;
    int64_t capacity;
    uint8_t *bytes;          /* owned */
    as_header header;        /* of the first fragment */
    asi_frame_header frame;  /* its 32 bytes */
} message_builder;

typedef struct builders
{
    message_builder **sorted; /* owned, by image and session id */
    int32_t count;
    int32_t capacity;
    int32_t looked_at;        /* index of the builder whose image was looked at last */
    int64_t max_length;       /* of a message */
    int32_t deliveries;       /* that go on: a handler may poll with the same assembler, and its message is a builder's */
} builders;

struct as_fragment_assembler
{
    as_fragment_handler handler;
    void *context;
    builders builders;
};

struct as_controlled_assembler
{
    as_controlled_handler handler;
    void *context;
    builders builders;
};

/* -- builders by image -------------------------------------------------------------------------------------------------- */

static bool is_before(const message_builder *builder, const as_header *header)
{
    return builder->image != header->image ? (uintptr_t)builder->image < (uintptr_t)header->image :
        builder->session_id < header->session_id;
}

static int32_t lower_bound(const builders *all, const as_header *header)
{
    int32_t low = 0;
    int32_t high = all->count;
    while (low < high)
    {
        const int32_t middle = low + (high - low) / 2;
        if (is_before(all->sorted[middle], header))
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return low;
}

/* The builder at `at`, if it is the one of the fragment. */
static message_builder *builder_at(const builders *all, int32_t at, const as_header *header)
{
    message_builder *found = at < all->count ? all->sorted[at] : NULL;
    return NULL != found && found->image == header->image && found->session_id == header->session_id ? found : NULL;
}

static message_builder *find_builder(const builders *all, const as_header *header)
{
    return builder_at(all, lower_bound(all, header), header);
}

static void free_builder(message_builder *builder)
{
    asi_client_image_unwatch(builder->image);
    free(builder->bytes);
    free(builder);
}

static void free_builders_of_closed_images(builders *all)
{
    for (int looks = 0; looks < LOOKS_PER_MESSAGE && all->count > 0 && 0 == all->deliveries; looks++)
    {
        all->looked_at = all->looked_at + 1 < all->count ? all->looked_at + 1 : 0;
        message_builder **at = all->sorted + all->looked_at;
        if (NULL != (*at)->image && as_image_is_closed((*at)->image))
        {
            free_builder(*at);
            all->count--;
            memmove(at, at + 1, sizeof(at[0]) * (size_t)(all->count - all->looked_at));
        }
    }
}

static bool reserve_builder(builders *all)
{
    if (all->count < all->capacity)
    {
        return true;
    }
    const int32_t capacity = all->capacity > 0 ? all->capacity * 2 : 8;
    message_builder **grown = realloc(all->sorted, sizeof(grown[0]) * (size_t)capacity);
    if (NULL == grown)
    {
        return false;
    }
    all->sorted = grown;
    all->capacity = capacity;
    return true;
}

/* Returns the image's builder and creates it if it does not exist; NULL when out of memory. */
static message_builder *get_builder(builders *all, const as_header *header)
{
    const int32_t at = lower_bound(all, header);
    message_builder *found = builder_at(all, at, header);
    if (NULL != found || !reserve_builder(all))
    {
        return found;
    }
    message_builder *fresh = calloc(1, sizeof(*fresh));
    if (NULL != fresh)
    {
        memmove(all->sorted + at + 1, all->sorted + at, sizeof(all->sorted[0]) * (size_t)(all->count - at));
        fresh->image = asi_client_image_watch(header->image);
        fresh->session_id = header->session_id;
        fresh->expected_offset = AS_NULL_VALUE;
        all->sorted[at] = fresh;
        all->count++;
    }
    return fresh;
}

static void free_builders(builders *all)
{
    for (int32_t i = 0; i < all->count; i++)
    {
        free_builder(all->sorted[i]);
    }
    free(all->sorted);
}

/* -- one message -------------------------------------------------------------------------------------------------------- */

static void reset(message_builder *builder)
{
    builder->length = 0;
    builder->expected_offset = AS_NULL_VALUE;
}

/* Longer messages can't be published, so what goes on is none. */
static int64_t max_length(const builders *all, const message_builder *builder)
{
    const int64_t of_stream = asi_log_max_message_length(NULL == builder->image ? AS_TERM_MAX_LENGTH : builder->image->term_length);
    return of_stream < all->max_length ? of_stream : all->max_length;
}

static bool append(message_builder *builder, const uint8_t *data, int64_t length)
{
    if (0 == length)
    {
        return true;
    }
    const int64_t needed = builder->length + length;
    if (needed > builder->capacity)
    {
        int64_t capacity = builder->capacity > MIN_CAPACITY ? builder->capacity : MIN_CAPACITY;
        while (capacity < needed)
        {
            capacity += capacity / 2;
        }
        uint8_t *grown = realloc(builder->bytes, (size_t)capacity);
        if (NULL == grown)
        {
            return false;
        }
        builder->bytes = grown;
        builder->capacity = capacity;
    }
    memcpy(builder->bytes + builder->length, data, (size_t)length);
    builder->length = needed;
    return true;
}

typedef enum build_step
{
    BUILD_DROPPED,   /* the fragment belongs to no message that is being built */
    BUILD_GATHERED,
    BUILD_COMPLETE,
    BUILD_NO_MEMORY
} build_step;

static build_step add_fragment(
    builders *all, const uint8_t *data, int64_t length, const as_header *header, message_builder **builder)
{
    const bool is_first = 0 != (header->flags & ASI_FLAG_BEGIN);
    if (is_first)
    {
        free_builders_of_closed_images(all);
    }
    message_builder *at = is_first ? get_builder(all, header) : find_builder(all, header);
    *builder = at;
    if (NULL == at)
    {
        return is_first ? BUILD_NO_MEMORY : BUILD_DROPPED;
    }
    if (is_first)
    {
        at->length = 0;
        at->header = *header;
        memcpy(&at->frame, header->frame, sizeof(at->frame));
    }
    else if (at->expected_offset != header->term_offset || at->header.term_id != header->term_id)
    {
        reset(at);
        return BUILD_DROPPED;
    }
    if (at->length + length > max_length(all, at))
    {
        reset(at);
        return BUILD_DROPPED;
    }
    if (!append(at, data, length))
    {
        return BUILD_NO_MEMORY;
    }
    if (0 != (header->flags & ASI_FLAG_END))
    {
        return BUILD_COMPLETE;
    }
    at->expected_offset = asi_align_i64(header->term_offset + length + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT);
    return BUILD_GATHERED;
}

/* The header of the whole message: the first frame's, with the total length and the end position. */
static as_header complete_header(message_builder *builder, const as_header *last)
{
    as_header header = builder->header;
    builder->frame.frame_length = (int32_t)(builder->length + AS_FRAME_HEADER_LENGTH);
    builder->frame.flags = (uint8_t)(builder->header.flags | last->flags);
    header.frame = (const uint8_t *)&builder->frame;
    header.flags = builder->frame.flags;
    header.position = last->position;
    return header;
}

static bool is_whole(const as_header *header)
{
    return ASI_FLAG_UNFRAGMENTED == (header->flags & ASI_FLAG_UNFRAGMENTED);
}

/* -- public ------------------------------------------------------------------------------------------------------------- */

as_result as_fragment_assembler_open(as_fragment_handler handler, void *context, as_fragment_assembler **assembler)
{
    if (NULL == handler)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "an assembler needs a handler");
    }
    as_fragment_assembler *fresh = calloc(1, sizeof(*fresh));
    if (NULL == fresh)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a fragment assembler");
    }
    fresh->handler = handler;
    fresh->context = context;
    fresh->builders.max_length = INT64_MAX;
    *assembler = fresh;
    return AS_OK;
}

void as_fragment_assembler_set_max_length(as_fragment_assembler *assembler, int64_t max_length)
{
    assembler->builders.max_length = max_length;
}

void as_fragment_assembler_on_fragment(void *assembler, const uint8_t *data, int64_t length, const as_header *header)
{
    as_fragment_assembler *self = assembler;
    if (is_whole(header))
    {
        self->handler(self->context, data, length, header);
        return;
    }
    message_builder *builder;
    const build_step step = add_fragment(&self->builders, data, length, header, &builder);
    if (BUILD_COMPLETE == step)
    {
        const as_header completed = complete_header(builder, header);
        self->builders.deliveries++;
        self->handler(self->context, builder->bytes, builder->length, &completed);
        self->builders.deliveries--;
    }
    if (NULL != builder && (BUILD_COMPLETE == step || BUILD_NO_MEMORY == step))
    {
        reset(builder);
    }
}

void as_fragment_assembler_close(as_fragment_assembler *assembler)
{
    if (NULL != assembler)
    {
        free_builders(&assembler->builders);
        free(assembler);
    }
}

as_result as_controlled_assembler_open(as_controlled_handler handler, void *context, as_controlled_assembler **assembler)
{
    if (NULL == handler)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "an assembler needs a handler");
    }
    as_controlled_assembler *fresh = calloc(1, sizeof(*fresh));
    if (NULL == fresh)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a controlled assembler");
    }
    fresh->handler = handler;
    fresh->context = context;
    fresh->builders.max_length = INT64_MAX;
    *assembler = fresh;
    return AS_OK;
}

as_action as_controlled_assembler_on_fragment(void *assembler, const uint8_t *data, int64_t length, const as_header *header)
{
    as_controlled_assembler *self = assembler;
    if (is_whole(header))
    {
        return self->handler(self->context, data, length, header);
    }
    message_builder *builder;
    const build_step step = add_fragment(&self->builders, data, length, header, &builder);
    if (BUILD_NO_MEMORY == step)
    {
        return AS_ACTION_ABORT; /* delivered again; memory may be available then */
    }
    if (BUILD_COMPLETE != step)
    {
        return AS_ACTION_CONTINUE;
    }
    const as_header completed = complete_header(builder, header);
    self->builders.deliveries++;
    const as_action action = self->handler(self->context, builder->bytes, builder->length, &completed);
    self->builders.deliveries--;
    if (AS_ACTION_ABORT == action)
    {
        builder->length -= length; /* the last fragment is delivered again */
    }
    else
    {
        reset(builder);
    }
    return action;
}

void as_controlled_assembler_close(as_controlled_assembler *assembler)
{
    if (NULL != assembler)
    {
        free_builders(&assembler->builders);
        free(assembler);
    }
}
