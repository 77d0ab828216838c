/* What a crash left of a truncation: segments, and bytes of the last one, behind the end of a stopped recording. They would stop its
 * extension when that reaches them; and recovery after another crash takes the highest segment for the last, so bytes that were
 * truncated would be the recording's again. Thread rule: the conductor's. */
#ifndef ASI_SERVER_LEFTOVERS_H
#define ASI_SERVER_LEFTOVERS_H

#include "aeron_spark/as_archive.h"
#include "store/catalog.h"

/* Removes them before the recording is extended over them, and before the catalog says that it is active. AS_E_STORAGE: they can't be. */
as_result asi_leftovers_clear_above(as_archive *archive, const asi_catalog_record *record) AS_MUST_USE;

#endif
