/* See host_table.h. */
#include "driver/ctl/host_table.h"

#include <stdio.h>

#include "driver/ctl/state.h"

static as_result fail_row(const char *args)
{
    return asi_fail(AS_E_USAGE, EINVAL,
        "aeron.name.resolver.init.args=%s is not rows of name,initialHost,reResolutionHost with a | between", args);
}

static as_result allocate_counter(asi_conductor *conductor, asi_host_row *row)
{
    uint8_t key[ASI_COUNTER_KEY_CAPACITY] = { 0 };
    char label[ASI_COUNTER_LABEL_CAPACITY];
    const size_t room = sizeof(key) - sizeof(int32_t);
    const size_t length = strlen(row->name) < room ? strlen(row->name) : room;
    asi_put_i32(key, (int32_t)length);
    memcpy(key + sizeof(int32_t), row->name, length);
    const int printed = snprintf(label, sizeof(label), "NameEntry{name='%s', initialResolutionHost='%s', "
        "reResolutionHost='%s'}", row->name, row->initial_host, row->re_resolution_host);
    const asi_counter_request request = {
        .type_id = ASI_HOST_TABLE_COUNTER_TYPE,
        .key = key,
        .key_length = (int64_t)(sizeof(int32_t) + length),
        .label = label,
        .label_length = printed < (int)sizeof(label) ? printed : (int)sizeof(label) - 1,
        .initial_value = ASI_HOST_INITIAL
    };
    return asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, &row->counter_id);
}

/* Cuts three columns out of a row's text. */
static bool read_row(char *text, asi_host_row *row)
{
    char *first = strchr(text, ',');
    char *second = NULL == first ? NULL : strchr(first + 1, ',');
    if (NULL == second || NULL != strchr(second + 1, ','))
    {
        return false;
    }
    *first = '\0';
    *second = '\0';
    *row = (asi_host_row){ .name = text, .initial_host = first + 1, .re_resolution_host = second + 1,
        .counter_id = AS_NULL_VALUE };
    return true;
}

static int32_t count_rows(const char *args)
{
    int32_t count = 1;
    for (; '\0' != *args; args++)
    {
        count += '|' == *args ? 1 : 0;
    }
    return count;
}

as_result asi_host_table_open(asi_host_table *table, asi_conductor *conductor, const char *args)
{
    const size_t size = strlen(args) + 1;
    *table = (asi_host_table){ .text = malloc(size), .rows = calloc((size_t)count_rows(args), sizeof(*table->rows)) };
    if (NULL == table->text || NULL == table->rows)
    {
        asi_host_table_close(table, conductor);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a table of hosts");
    }
    memcpy(table->text, args, size);
    char *rest = NULL;
    as_result result = AS_OK;
    for (char *row = strtok_r(table->text, "|", &rest); NULL != row && AS_OK == result; row = strtok_r(NULL, "|", &rest))
    {
        result = read_row(row, &table->rows[table->count]) ? AS_OK : fail_row(args);
        if (AS_OK == result)
        {
            result = allocate_counter(conductor, &table->rows[table->count]);
        }
        table->count += AS_OK == result ? 1 : 0;
    }
    if (AS_OK != result)
    {
        asi_host_table_close(table, conductor);
    }
    return result;
}

void asi_host_table_close(asi_host_table *table, asi_conductor *conductor)
{
    for (int32_t i = 0; i < table->count; i++)
    {
        asi_counters_free(&conductor->counters, table->rows[i].counter_id, conductor->now_ms);
    }
    free(table->text);
    free(table->rows);
    *table = (asi_host_table){ 0 };
}

asi_host_outcome asi_host_table_find(
    const asi_host_table *table, const asi_counters *counters, const char *name, char *host)
{
    for (int32_t i = 0; i < table->count; i++)
    {
        const asi_host_row *row = &table->rows[i];
        if (0 != strcmp(name, row->name))
        {
            continue;
        }
        const int64_t choice = asi_load_acquire_i64(asi_counter_addr(counters, row->counter_id));
        if (ASI_HOST_INITIAL != choice && ASI_HOST_RE_RESOLVED != choice)
        {
            return ASI_HOST_FAILED;
        }
        snprintf(host, ASI_HOST_CAPACITY, "%s", ASI_HOST_INITIAL == choice ? row->initial_host : row->re_resolution_host);
        return ASI_HOST_FOUND;
    }
    return ASI_HOST_UNKNOWN;
}
