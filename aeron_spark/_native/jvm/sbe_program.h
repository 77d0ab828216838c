/* Decodes the messages of a batch by what Python has compiled (aeron_spark/sbe/program.py): one template, its columns in C. */
#ifndef ASJ_SBE_PROGRAM_H
#define ASJ_SBE_PROGRAM_H

#include <stddef.h>

#include "aeron_spark/as_sbe.h"

#define ASJ_NO_MEMORY (-8) /* beyond the values of as_result, which have a text */
#define ASJ_NOT_PLAIN (-9) /* some message or value is not as it should be: Python decides what becomes of it */
#define ASJ_NO_PROGRAM (-10) /* bytes of another build */

typedef struct asj_sbe asj_sbe;

/* Takes a copy of the bytes. Of the columns only those are made whose byte in `wanted` is not 0; its length is `wanted_count`, the
 * number of columns. */
int64_t asj_sbe_open(const uint8_t *bytes, int64_t length, const uint8_t *wanted, int64_t wanted_count, asj_sbe **opened);
void asj_sbe_close(asj_sbe *sbe);
/* Of `count` payloads, payload i in [offsets[i], offsets[i + 1]). Returns the number of rows, or a result below 0. */
int64_t asj_sbe_decode(asj_sbe *sbe, const uint8_t *bytes, const int32_t *offsets, int64_t count);
/* Of the last decode, until the next: the wanted columns as the children of a struct ArrowArray, NULL where there are none; and the
 * payload of each row, NULL where each has one. */
const void *asj_sbe_array(const asj_sbe *sbe);
const int32_t *asj_sbe_payloads(const asj_sbe *sbe);

#endif
