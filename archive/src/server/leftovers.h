/* Removes what a crash left of a truncation: segments, and bytes of the last segment, after the end of a stopped recording. An
 * extension that reaches them would fail. Recovery after another crash takes the highest segment as the last one, so truncated
 * bytes would become part of the recording again. Thread rule: conductor only. */
#ifndef ASI_SERVER_LEFTOVERS_H
#define ASI_SERVER_LEFTOVERS_H

#include "aeron_spark/as_archive.h"
#include "store/catalog.h"

/* Removes the leftovers before the recording is extended over them, and before the catalog marks it active. AS_E_STORAGE: they
 * could not be removed. */
as_result asi_leftovers_clear_above(as_archive *archive, const asi_catalog_record *record) AS_MUST_USE;

#endif
