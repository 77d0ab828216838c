/* Failing with a text: class, code and message of the thread's last failure (the one permitted per-thread global). Called by
 * every module; as_error_text() and as_error_code() of as_types.h read it. */
#ifndef ASI_BASE_RESULT_H
#define ASI_BASE_RESULT_H

#include <stdbool.h>

#include "aeron_spark/as_types.h"

/* Records the failure and returns `class_of_failure`, so that a caller can write `return asi_fail(AS_E_USAGE, 0, "...")`. */
as_result asi_fail(as_result class_of_failure, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* As asi_fail, with errno: code = errno_value, and ": <strerror>" is appended. */
as_result asi_fail_errno(as_result class_of_failure, int32_t errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True when the code of this thread's last failure is an errno, from asi_fail_errno. Protocol codes have the same numbers. */
bool asi_error_is_errno(void);
/* Records a failure of another thread, with the code and the text that it got there; returns `result`. */
as_result asi_fail_again(as_result result, int32_t code, bool is_errno, const char *text);
/* Prepends "<context>: " to the recorded text and returns `result` unchanged; for callers that pass a failure up. */
as_result asi_fail_in(as_result result, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
