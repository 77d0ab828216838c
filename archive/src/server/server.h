/* Opens an archive with other files, clocks and clients than the system's. as_archive.h defines the contract. */
#ifndef ASI_SERVER_SERVER_H
#define ASI_SERVER_SERVER_H

#include "base/clock.h"
#include "base/rand.h"
#include "server/config.h"
#include "store/file_ops.h"

/* For tests: opens an archive with other files and another clock. NULL: the system's. */
as_result asi_archive_open_with(const as_archive_config *config, const asi_file_ops *files, const asi_clock *clock,
    as_archive **archive) AS_MUST_USE;

/* All external dependencies of an archive, for the simulation. */
typedef struct asi_archive_dependencies
{
    const asi_file_ops *files;        /* borrowed until close; NULL: the system's */
    const asi_clock *clock;           /* copied; NULL: the system's */
    const asi_rand *rand;             /* copied; NULL: seeded by the system */
    /* Opens the archive's Aeron client; NULL: as_client_open. */
    as_result (*open_client)(void *context, const as_client_options *options, as_client **client);
    void *open_client_context;
    uint32_t boot;                    /* changes with each boot of the machine; 0: read from the system */
} asi_archive_dependencies;

as_result asi_archive_open_on(const as_archive_config *config, const asi_archive_dependencies *dependencies,
    as_archive **archive) AS_MUST_USE;

#endif
