/* Which instructions this CPU has, beyond those of every CPU of its kind. Thread rule: any.
 *
 * The compiler's __builtin_cpu_supports needs a part of libgcc that not every toolchain has: that of the release would link
 * a stand-in which always says no. */
#ifndef ASI_BASE_CPU_H
#define ASI_BASE_CPU_H

#include <stdbool.h>

typedef struct asi_cpu
{
    bool has_sse4_2;  /* x86_64: CRC-32C by instruction */
    bool has_pclmul;  /* x86_64: carry-less multiplication, with SSE 4.1 */
} asi_cpu;

/* Written while the program or library is loaded, never after. */
extern asi_cpu asi_this_cpu;

#endif
