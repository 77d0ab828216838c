/* Growing array of borrowed or owned pointers, in insertion order. The conductor keeps its resources in such lists. Adding
 * allocates, so only commands add, never the duty cycle. Thread rule: one owner. */
#ifndef ASI_DRIVER_CTL_LIST_H
#define ASI_DRIVER_CTL_LIST_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"

typedef struct asi_list
{
    void **items; /* owned */
    int32_t count;
    int32_t capacity;
} asi_list;

static inline as_result asi_list_add(asi_list *list, void *item)
{
    if (list->count == list->capacity)
    {
        const int32_t capacity = 0 == list->capacity ? 8 : list->capacity * 2;
        void **items = realloc(list->items, (size_t)capacity * sizeof(*items));
        if (NULL == items)
        {
            return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a list of %d resources", capacity);
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return AS_OK;
}

static inline void asi_list_remove_at(asi_list *list, int32_t index)
{
    list->count--;
    memmove(&list->items[index], &list->items[index + 1], (size_t)(list->count - index) * sizeof(*list->items));
}

static inline void asi_list_remove(asi_list *list, const void *item)
{
    for (int32_t i = list->count - 1; i >= 0; i--)
    {
        if (list->items[i] == item)
        {
            asi_list_remove_at(list, i);
        }
    }
}

static inline void asi_list_close(asi_list *list)
{
    free(list->items);
    *list = (asi_list){ 0 };
}

#endif
