/* Repairs a catalog after a crash. The states that a crash can leave are described in catalog_repair.c. */
#ifndef ASI_STORE_CATALOG_REPAIR_H
#define ASI_STORE_CATALOG_REPAIR_H

#include "store/catalog_record.h"

/* Repairs the file and `bytes` alike. AS_E_STORAGE: a write failed. */
as_result asi_catalog_repair(const asi_catalog_params *params, int fd, const char *path, uint8_t *bytes, int64_t length,
    int32_t alignment) AS_MUST_USE;

#endif
