/* Reads property files; see properties.h. One pass over the file, one logical line at a time. */
#include "base/properties.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_CAPACITY 2048

static bool is_blank(char c) { return ' ' == c || '\t' == c; }

as_result asi_property_parse_untrusted(const char *text, asi_on_property on_property, void *context)
{
    char name[LINE_CAPACITY];
    while (is_blank(*text))
    {
        text++;
    }
    size_t length = strcspn(text, "=:");
    if ('\0' == text[length] || length >= sizeof(name))
    {
        return asi_fail(AS_E_USAGE, 0, "'%.100s' is no property; write name=value", text);
    }
    const char *value = text + length + 1;
    while (length > 0 && is_blank(text[length - 1]))
    {
        length--;
    }
    if (0 == length)
    {
        return asi_fail(AS_E_USAGE, 0, "'%.100s' has no name before its '=' or ':'", text);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    while (is_blank(*value))
    {
        value++;
    }
    return on_property(context, name, value);
}

/* Spec: 05 §15 - every line, the last one too, ends with a newline. */
static as_result read_line(FILE *file, const char *path, int number, char *line, bool *at_end)
{
    *at_end = NULL == fgets(line, LINE_CAPACITY, file);
    if (*at_end)
    {
        return 0 != ferror(file) ? asi_fail_errno(AS_E_STORAGE, errno, "can't read %s", path) : AS_OK;
    }
    size_t length = strlen(line);
    if (0 == length || '\n' != line[length - 1])
    {
        return asi_fail(AS_E_USAGE, 0, "%s:%d: the line is longer than %d bytes or lacks its newline", path, number,
            LINE_CAPACITY - 1);
    }
    line[--length] = '\0';
    if (length > 0 && '\r' == line[length - 1])
    {
        line[--length] = '\0';
    }
    return AS_OK;
}

static as_result load(FILE *file, const char *path, asi_on_property on_property, void *context)
{
    char line[LINE_CAPACITY];
    char logical[LINE_CAPACITY];
    size_t used = 0;
    for (int number = 1;; number++)
    {
        bool at_end;
        const as_result read = read_line(file, path, number, line, &at_end);
        if (AS_OK != read || at_end)
        {
            return AS_OK == read && used > 0 ? asi_fail(AS_E_USAGE, 0, "%s ends within a continued line", path) : read;
        }
        const char *text = line;
        while (is_blank(*text))
        {
            text++;
        }
        if (0 == used && ('\0' == *text || '#' == *text || '!' == *text))
        {
            continue;
        }
        size_t length = strlen(text);
        const bool continues = length > 0 && '\\' == text[length - 1];
        length -= continues ? 1 : 0;
        if (used + length >= sizeof(logical))
        {
            return asi_fail(AS_E_USAGE, 0, "%s:%d: the continued line is longer than %d bytes", path, number, LINE_CAPACITY - 1);
        }
        memcpy(logical + used, text, length);
        used += length;
        logical[used] = '\0';
        if (!continues)
        {
            used = 0;
            const as_result parsed = asi_property_parse_untrusted(logical, on_property, context);
            if (AS_OK != parsed)
            {
                return asi_fail_in(parsed, "%s:%d", path, number);
            }
        }
    }
}

as_result asi_properties_load_untrusted(const char *path, asi_on_property on_property, void *context)
{
    FILE *file = fopen(path, "r");
    if (NULL == file)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "can't open the properties %s", path);
    }
    const as_result result = load(file, path, on_property, context);
    fclose(file);
    return result;
}
