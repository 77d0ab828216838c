/* Asks the CPU what it can do; see cpu.h. Once, as CPUID leaves a virtual machine and takes microseconds there. */
#include "base/cpu.h"

asi_cpu asi_this_cpu;

#if defined(__x86_64__)
#include <cpuid.h>

__attribute__((constructor)) static void ask(void)
{
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx))
    {
        asi_this_cpu.has_sse4_2 = ecx & bit_SSE4_2;
        asi_this_cpu.has_pclmul = (ecx & bit_PCLMUL) && (ecx & bit_SSE4_1);
    }
}
#endif
