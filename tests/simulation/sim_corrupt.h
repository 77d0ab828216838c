/* Makes datagrams that a broken or hostile sender could send and that a peer can tell from good ones; sim_net.h says which and
 * why. Called by sim_net.c. Uses nothing but the random numbers that it is given. */
#ifndef AS_SIM_CORRUPT_H
#define AS_SIM_CORRUPT_H

#include "base/rand.h"
#include "wire/frame.h"

#define SIM_CORRUPT_MAX_GROWTH 96

/* Changes the datagram; `bytes` has room for SIM_CORRUPT_MAX_GROWTH more. Returns its new length. */
int32_t sim_corrupt(uint8_t *bytes, int32_t length, asi_rand *rand);
/* The same, or random bytes, or a control frame that asks for nonsense. */
int32_t sim_forge(uint8_t *bytes, int32_t length, asi_rand *rand);

#endif
