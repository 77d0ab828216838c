/* Storage and descriptors that run out, for the drivers only. While `is_full`, a driver in its duty cycle gets no page of a
 * log, no new file and no socket, as with a full /dev/shm and at its limit of descriptors. Clients map what their driver made.
 *
 * The linker redirects madvise and open of the whole program here (CMakeLists.txt), so that the product needs no hook for it.
 * The signal that ends a process which writes to a missing page cannot be simulated: tests/c/shm tests it. One per process. */
#ifndef AS_SIM_SCARCE_H
#define AS_SIM_SCARCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_scarcity
{
    bool is_full;
    bool is_driver_running;
    int64_t refused_pages;
    int64_t refused_files;
} sim_scarcity;

extern sim_scarcity sim_scarce;

#endif
