/* See error_repeats.h. */
#include "shm/error_repeats.h"

#include "shm/error_log.h"

void asi_error_repeats_init(asi_error_repeats *repeats, asi_console *console, const void *section, int64_t length)
{
    *repeats = (asi_error_repeats){ .console = console, .section = section, .length = length };
}

static void on_entry(const asi_error_entry *entry, void *context)
{
    asi_error_repeats *repeats = context;
    const int64_t index = repeats->index++;
    const bool is_new = index < ASI_ERROR_REPEATS_CAPACITY && entry->count > 1 && entry->count > repeats->told[index];
    if (is_new && asi_console_error(repeats->console, 0, entry->text, entry->text_length, entry->count))
    {
        repeats->told[index] = entry->count;
    }
}

void asi_error_repeats_poll(asi_error_repeats *repeats, int64_t now_ns)
{
    if (NULL != repeats->console && now_ns >= repeats->next_ns)
    {
        repeats->next_ns = now_ns + ASI_ERROR_REPEATS_INTERVAL_NS;
        repeats->index = 0;
        (void)asi_error_log_read_untrusted(repeats->section, repeats->length, 0, on_entry, repeats);
    }
}
