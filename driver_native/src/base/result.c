/* Per-thread error record; see result.h. */
#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERROR_TEXT_CAPACITY 8192

typedef struct error_record
{
    int32_t code;
    bool is_errno;
    char text[ERROR_TEXT_CAPACITY];
} error_record;

static _Thread_local error_record last_error;

const char *as_error_text(void) { return last_error.text; }

int32_t as_error_code(void) { return last_error.code; }

bool asi_error_is_errno(void) { return last_error.is_errno; }

const char *as_version_text(void) { return ASI_VERSION_TEXT; }

const char *as_commit_text(void) { return ASI_COMMIT_TEXT; }

as_result asi_fail(as_result class_of_failure, int32_t code, const char *format, ...)
{
    char text[ERROR_TEXT_CAPACITY]; /* arguments may point into the record that is being replaced */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(last_error.text, text, strlen(text) + 1);
    last_error.code = code;
    last_error.is_errno = false;
    return class_of_failure;
}

as_result asi_fail_again(as_result result, int32_t code, bool is_errno, const char *text)
{
    asi_fail(result, code, "%s", text);
    last_error.is_errno = is_errno;
    return result;
}

as_result asi_fail_errno(as_result class_of_failure, int32_t errno_value, const char *format, ...)
{
    char text[ERROR_TEXT_CAPACITY / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    asi_fail(class_of_failure, errno_value, "%s: %s", text, strerror(errno_value));
    last_error.is_errno = true;
    return class_of_failure;
}

as_result asi_fail_in(as_result result, const char *format, ...)
{
    char text[ERROR_TEXT_CAPACITY / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const bool is_errno = last_error.is_errno;
    asi_fail(result, last_error.code, "%s: %s", text, last_error.text);
    last_error.is_errno = is_errno;
    return result;
}
