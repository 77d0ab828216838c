/* Property files and -D defines in the stock grammar: '#' or '!' comments, name=value or name:value, spaces and tabs around
 * the name and before the value trimmed, a trailing '\' continues on the next line, CRLF accepted. Spec: 05 §15.
 *
 * Used by the configurations of driver and archive and by their executables. Thread rule: pure except for reading the file. */
#ifndef ASI_BASE_PROPERTIES_H
#define ASI_BASE_PROPERTIES_H

#include "base/result.h"

/* A failure stops the reading and is returned. */
typedef as_result (*asi_on_property)(void *context, const char *name, const char *value);

/* Parses one "name=value" or "name:value"; AS_E_USAGE with the text if it is neither. */
as_result asi_property_parse_untrusted(const char *text, asi_on_property on_property, void *context) AS_MUST_USE;
/* AS_E_STORAGE: the file cannot be read. AS_E_USAGE: a line is not a property, is too long (2047 bytes), or lacks its
   newline. */
as_result asi_properties_load_untrusted(const char *path, asi_on_property on_property, void *context) AS_MUST_USE;

#endif
