/* Goal: the instructions that a CPU has are found, as without them checksums are right, but slow. Method: compare with the kernel. */
#include "base/cpu.h"

#include "check.h"
#include "cpuinfo.h"

static void the_kernel_agrees(void)
{
#if defined(__x86_64__)
    CHECK_I64(asi_this_cpu.has_sse4_2, cpuinfo_has("sse4_2"));
    CHECK_I64(asi_this_cpu.has_pclmul, cpuinfo_has("pclmulqdq") && cpuinfo_has("sse4_1"));
#else
    CHECK(!asi_this_cpu.has_sse4_2 && !asi_this_cpu.has_pclmul);
#endif
}

int main(void)
{
    RUN(the_kernel_agrees);
    return 0;
}
