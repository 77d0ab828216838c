/* A batch's memory, and access to the results of a walk. See as_sbe.h. */
#include <stdlib.h>

#include "sbe_batch.h"

as_result as_sbe_batch_open(const as_sbe_plan *plan, as_sbe_batch **opened)
{
    as_sbe_batch *batch = calloc(1, sizeof(*batch));
    if (NULL == batch)
    {
        return AS_E_INTERNAL;
    }
    batch->plan = plan;
    batch->level_count = plan->level_count;
    batch->data_count = plan->data_count;
    batch->levels = calloc((size_t)plan->level_count, sizeof(*batch->levels));
    batch->data = calloc((size_t)plan->data_count + 1, sizeof(*batch->data));
    batch->marks = calloc((size_t)(plan->level_count + plan->data_count), sizeof(*batch->marks));
    if (NULL == batch->levels || NULL == batch->data || NULL == batch->marks)
    {
        as_sbe_batch_close(batch);
        return AS_E_INTERNAL;
    }
    *opened = batch;
    return AS_OK;
}

void as_sbe_batch_close(as_sbe_batch *batch)
{
    if (NULL == batch)
    {
        return;
    }
    for (int32_t i = 0; NULL != batch->levels && i < batch->level_count; i++)
    {
        free(batch->levels[i].starts);
        free(batch->levels[i].versions);
        free(batch->levels[i].lengths);
        free(batch->levels[i].list_offsets);
        free(batch->levels[i].list_validity);
    }
    for (int32_t i = 0; NULL != batch->data && i < batch->data_count; i++)
    {
        free(batch->data[i].starts);
        free(batch->data[i].lengths);
    }
    free(batch->levels);
    free(batch->data);
    free(batch->marks);
    free(batch->errors);
    free(batch->ends);
    free(batch);
}
