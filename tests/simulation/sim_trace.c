/* See sim_trace.h. */
#include "sim_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVENTS 40
#define TEXT_CAPACITY 256

static struct
{
    const int64_t *now_ns;
    bool is_verbose;
    uint64_t digest;
    int64_t count;
    char texts[EVENTS][TEXT_CAPACITY];
} trace = { .digest = 0xcbf29ce484222325ULL };

void sim_trace_open(const int64_t *now_ns, bool is_verbose)
{
    trace.now_ns = now_ns;
    trace.is_verbose = is_verbose;
}

static void mix(uint64_t value) { trace.digest = (trace.digest ^ value) * 0x100000001b3ULL; }

void sim_digest(int64_t a, int64_t b, int64_t c)
{
    mix((uint64_t)*trace.now_ns);
    mix((uint64_t)a);
    mix((uint64_t)b);
    mix((uint64_t)c);
}

uint64_t sim_digest_value(void) { return trace.digest; }

void sim_trace(const char *format, ...)
{
    char *text = trace.texts[trace.count++ % EVENTS];
    const int length = snprintf(text, TEXT_CAPACITY, "%12.6f ", (double)*trace.now_ns / 1e9);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, TEXT_CAPACITY - (size_t)length, format, arguments);
    va_end(arguments);
    char *folder = strstr(text, SIM_FOLDER);
    if (NULL != folder) /* another one in every run */
    {
        memset(folder + strlen(SIM_FOLDER), '.', strnlen(folder + strlen(SIM_FOLDER), SIM_FOLDER_CHANCE));
    }
    for (const char *at = text; '\0' != *at; at++)
    {
        mix((uint64_t)(unsigned char)*at);
    }
    if (trace.is_verbose)
    {
        printf("%s\n", text);
    }
}

void sim_fail(const char *check, const char *format, ...)
{
    printf("FAILED check=%s at %.6f s: ", check, (double)*trace.now_ns / 1e9);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    const int64_t first = trace.count > EVENTS ? trace.count - EVENTS : 0;
    for (int64_t i = first; !trace.is_verbose && i < trace.count; i++)
    {
        printf("  %s\n", trace.texts[i % EVENTS]);
    }
    fflush(stdout);
    _exit(1);
}
