/* Failing with a text: class, code and message of the thread's last failure (the one permitted per-thread global). Called by
 * every module; as_error_text() and as_error_code() of as_types.h read it. */
#ifndef ASI_BASE_RESULT_H
#define ASI_BASE_RESULT_H

#include "aeron_spark/as_types.h"

/* Records the failure and returns `class_of_failure`, so that a caller can write `return asi_fail(AS_E_USAGE, 0, "...")`. */
as_result asi_fail(as_result class_of_failure, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* As asi_fail, with errno: code = errno_value, and ": <strerror>" is appended. */
as_result asi_fail_errno(as_result class_of_failure, int32_t errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prepends "<context>: " to the recorded text and returns `result` unchanged; for callers that pass a failure up. */
as_result asi_fail_in(as_result result, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
