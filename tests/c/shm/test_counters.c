/* Goal: counters are allocated, labelled, freed and reused as Spec: 01 §5-7 says, with the bytes a stock driver writes, and
 * hostile records are clipped. Method: heap sections, single steps, a stock cnc.dat and what the stock tool said of it. */
#include "shm/counters.h"

#include "shm/cnc.h"
#include "support.h"
#include "trap.h"

#define COUNT 64

typedef struct fixture
{
    asi_counters counters;
    asi_counters_manager manager;
} fixture;

static fixture fixture_create(int32_t count)
{
    fixture made;
    const int64_t metadata_length = (int64_t)count * (int64_t)sizeof(asi_counter_metadata);
    const int64_t values_length = (int64_t)count * (int64_t)sizeof(asi_counter_value);
    void *metadata = calloc(1, (size_t)metadata_length);
    void *values = calloc(1, (size_t)values_length);
    CHECK_I64(asi_counters_init(&made.counters, metadata, metadata_length, values, values_length), AS_OK);
    CHECK_I64(asi_counters_manager_init(&made.manager, &made.counters, 1000), AS_OK);
    return made;
}

static void fixture_delete(fixture *made)
{
    asi_counters_manager_close(&made->manager);
    free(made->counters.metadata);
    free(made->counters.values);
}

static int32_t allocate(fixture *on, int64_t registration_id, int64_t now_ms)
{
    const asi_counter_request request = {
        .type_id = 1001, .key = "key", .key_length = 3, .label = "label", .label_length = 5,
        .registration_id = registration_id, .owner_id = 2, .reference_id = 3, .initial_value = 4
    };
    int32_t id = -1;
    CHECK_I64(asi_counters_allocate(&on->manager, &request, now_ms, &id), AS_OK);
    return id;
}

static void checks_sections(void)
{
    static uint8_t bytes[4096] __attribute__((aligned(64)));
    asi_counters counters;
    CHECK_I64(asi_counters_init(&counters, bytes, 512, bytes, 127), AS_E_DATA);
    CHECK_I64(asi_counters_init(&counters, bytes, 511, bytes, 128), AS_E_DATA);
    CHECK_I64(asi_counters_init(&counters, bytes, 512, bytes, 256), AS_E_DATA);
    CHECK_I64(asi_counters_init(&counters, bytes, -1, bytes, -128), AS_E_DATA);
    CHECK_I64(asi_counters_init(&counters, bytes, 2048, bytes, 512), AS_OK);
    CHECK_I64(counters.max_count, 4);
}

static void writes_the_specified_fields(void)
{
    fixture on = fixture_create(COUNT);
    CHECK_I64(allocate(&on, 77, 0), 0);
    const asi_counter_metadata *metadata = &on.counters.metadata[0];
    const asi_counter_value *value = &on.counters.values[0];
    CHECK_I64(metadata->state, ASI_COUNTER_ALLOCATED);
    CHECK_I64(metadata->type_id, 1001);
    CHECK_I64(metadata->free_for_reuse_deadline_ms, INT64_MAX);
    CHECK(0 == memcmp(metadata->key, "key\0", 4));
    CHECK_I64(metadata->label_length, 5);
    CHECK(0 == memcmp(metadata->label, "label", 5));
    CHECK_I64(value->registration_id, 77);
    CHECK_I64(value->owner_id, 2);
    CHECK_I64(value->reference_id, 3);
    CHECK_I64(value->value, 4);
    fixture_delete(&on);
}

static void look_at_value(void *context)
{
    const asi_counter_value *value = context;
    CHECK_I64(value->registration_id, 0);
    CHECK_I64(value->value, 4);
}

/* Who holds an old counter of the id, or finds the new one, must not take one for the other: the registration id is gone before
 * the metadata change, and is there after them; a key is followed by zeros. */
static void an_id_changes_hands_in_order(void)
{
    fixture on = fixture_create(COUNT);
    free(on.counters.metadata);
    uint8_t *pages = aligned_alloc(TRAP_LENGTH, 2 * TRAP_LENGTH);
    CHECK(NULL != pages);
    memset(pages, 0, 2 * TRAP_LENGTH);
    on.counters.metadata = (asi_counter_metadata *)(void *)pages;
    on.manager.counters.metadata = on.counters.metadata;
    CHECK_I64(allocate(&on, 77, 0), 0);
    on.counters.metadata[0].key[3] = 9;
    on.counters.metadata[0].key[ASI_COUNTER_KEY_CAPACITY - 1] = 9;
    on.manager.high_water_id = -1; /* the same id again */
    trap_arm(pages, look_at_value, &on.counters.values[0]);
    CHECK_I64(allocate(&on, 78, 0), 0);
    trap_check_touched();
    CHECK_I64(on.counters.values[0].registration_id, 78);
    CHECK_I64(on.counters.metadata[0].key[2], 'y');
    CHECK_I64(on.counters.metadata[0].key[3], 0);
    CHECK_I64(on.counters.metadata[0].key[ASI_COUNTER_KEY_CAPACITY - 1], 0);
    fixture_delete(&on);
}

static void cuts_long_keys_and_labels(void)
{
    fixture on = fixture_create(COUNT);
    char label[500];
    memset(label, 'x', sizeof(label));
    const asi_counter_request request = {
        .type_id = 1001, .key = label, .key_length = 200, .label = label, .label_length = sizeof(label)
    };
    int32_t id;
    CHECK_I64(asi_counters_allocate(&on.manager, &request, 0, &id), AS_OK);
    CHECK_I64(on.counters.metadata[id].label_length, ASI_COUNTER_LABEL_CAPACITY);
    CHECK_I64(on.counters.metadata[id + 1].state, ASI_COUNTER_UNUSED);
    char read[ASI_COUNTER_LABEL_CAPACITY + 1];
    asi_counter_label(&on.counters, id, read);
    CHECK_I64(strlen(read), ASI_COUNTER_LABEL_CAPACITY);
    asi_counter_append_label(&on.counters, id, " more");
    CHECK_I64(on.counters.metadata[id].label_length, ASI_COUNTER_LABEL_CAPACITY);
    fixture_delete(&on);
}

static void appends_labels(void)
{
    fixture on = fixture_create(COUNT);
    const int32_t id = allocate(&on, 1, 0);
    char read[ASI_COUNTER_LABEL_CAPACITY + 1];
    asi_counter_append_label(&on.counters, id, " name=a");
    asi_counter_label(&on.counters, id, read);
    CHECK_TEXT(read, "label name=a");
    static const int32_t HOSTILE[] = { -1, INT32_MIN, 381, INT32_MAX };
    for (size_t i = 0; i < sizeof(HOSTILE) / sizeof(HOSTILE[0]); i++)
    {
        on.counters.metadata[id].label_length = HOSTILE[i];
        asi_counter_label(&on.counters, id, read);
        asi_counter_append_label(&on.counters, id, "suffix");
        CHECK(on.counters.metadata[id].label_length >= 0);
        CHECK(on.counters.metadata[id].label_length <= ASI_COUNTER_LABEL_CAPACITY);
    }
    fixture_delete(&on);
}

static void reuses_ids_after_their_time_in_order(void)
{
    fixture on = fixture_create(4);
    for (int32_t id = 0; id < 3; id++)
    {
        CHECK_I64(allocate(&on, id, 0), id);
    }
    asi_counters_free(&on.manager, 1, 100);
    CHECK_I64(asi_counter_state(&on.counters, 1), ASI_COUNTER_RECLAIMED);
    CHECK_I64(on.counters.metadata[1].key[0], 0);
    CHECK_I64(on.counters.metadata[1].free_for_reuse_deadline_ms, 1100);
    CHECK_I64(on.counters.values[1].registration_id, 1); /* kept until reuse */
    asi_counters_free(&on.manager, 1, 100); /* no effect twice */
    asi_counters_free(&on.manager, 0, 200);
    CHECK_I64(allocate(&on, 50, 1099), 3);
    const asi_counter_request request = { .type_id = 1001 };
    int32_t id = -7;
    CHECK_I64(asi_counters_allocate(&on.manager, &request, 1099, &id), AS_E_STORAGE);
    CHECK_I64(id, -7);
    CHECK_I64(allocate(&on, 51, 1100), 1);
    CHECK_I64(asi_counters_allocate(&on.manager, &request, 1199, &id), AS_E_STORAGE);
    CHECK_I64(allocate(&on, 52, 1200), 0);
    for (int round = 0; round < 20; round++) /* the queue of free ids wraps */
    {
        const int64_t now_ms = 10000 + round * 10000;
        asi_counters_free(&on.manager, 2, now_ms);
        asi_counters_free(&on.manager, 0, now_ms);
        CHECK_I64(allocate(&on, round, now_ms + 5000), 2);
        CHECK_I64(allocate(&on, round, now_ms + 5000), 0);
    }
    asi_counters_free(&on.manager, -1, 0);
    asi_counters_free(&on.manager, 4, 0);
    fixture_delete(&on);
}

static bool has_owner_9(const asi_counters *counters, int32_t counter_id, void *context)
{
    (void)context;
    return 9 == counters->values[counter_id].owner_id;
}

static void finds(void)
{
    fixture on = fixture_create(COUNT);
    for (int32_t id = 0; id < 5; id++)
    {
        CHECK_I64(allocate(&on, 100 + id, 0), id);
    }
    on.counters.values[3].owner_id = 9;
    asi_counters_free(&on.manager, 2, 0);
    CHECK_I64(asi_counters_find(&on.counters, 1001, NULL, NULL), 0);
    CHECK_I64(asi_counters_find(&on.counters, 1002, NULL, NULL), -1);
    CHECK_I64(asi_counters_find(&on.counters, 1001, has_owner_9, NULL), 3);
    CHECK_I64(asi_counters_find_by_registration(&on.counters, 1001, 104), 4);
    CHECK_I64(asi_counters_find_by_registration(&on.counters, 1001, 102), -1);
    on.counters.metadata[0].state = ASI_COUNTER_UNUSED; /* the scan ends at the first unused one */
    CHECK_I64(asi_counters_find_by_registration(&on.counters, 1001, 104), -1);
    CHECK_I64(asi_counter_state(&on.counters, -1), ASI_COUNTER_UNUSED);
    CHECK_I64(asi_counter_state(&on.counters, COUNT), ASI_COUNTER_UNUSED);
    fixture_delete(&on);
}

/* Every label of the captured file is what the stock tool printed for it. */
static void reads_stock_labels(const asi_counters *counters)
{
    int64_t length;
    char *text = (char *)golden_load("shm/c-driver-aeronstat.txt", &length);
    int32_t expected_id = 0;
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); NULL != line; line = strtok_r(NULL, "\n", &state))
    {
        int id;
        const char *label = strstr(line, " - ");
        if (NULL == label || 1 != sscanf(line, "%d:", &id) || NULL == strstr(line, ": "))
        {
            continue;
        }
        CHECK_I64(id, expected_id++);
        char read[ASI_COUNTER_LABEL_CAPACITY + 1];
        CHECK_I64(asi_counter_state(counters, id), ASI_COUNTER_ALLOCATED);
        asi_counter_label(counters, id, read);
        CHECK_TEXT(read, label + 3);
    }
    CHECK_I64(expected_id, 65);
    CHECK_I64(asi_counter_state(counters, expected_id), ASI_COUNTER_UNUSED);
    free(text);
}

/* Where our record must equal the stock one except the commit in the label. */
static void check_same_system_counter(const asi_counters *ours, const asi_counters *stock, int32_t id)
{
    const asi_counter_metadata *mine = &ours->metadata[id];
    const asi_counter_metadata *theirs = &stock->metadata[id];
    if (ASI_SYSTEM_ERRORS == id || ASI_SYSTEM_AERON_VERSION == id)
    {
        char label[ASI_COUNTER_LABEL_CAPACITY + 1];
        asi_counter_label(ours, id, label);
        const char *commit = strstr(label, " commit=");
        CHECK(NULL != commit);
        CHECK_TEXT(commit + 8, as_commit_text());
        CHECK(0 == memcmp(mine->label, theirs->label, (size_t)(commit + 8 - label)));
        CHECK(0 == memcmp(mine, theirs, offsetof(asi_counter_metadata, label_length)));
    }
    else
    {
        CHECK(0 == memcmp(mine, theirs, sizeof(*mine)));
    }
    CHECK_I64(ours->values[id].registration_id, stock->values[id].registration_id);
    CHECK_I64(ours->values[id].owner_id, stock->values[id].owner_id);
    CHECK_I64(ours->values[id].reference_id, stock->values[id].reference_id);
}

/* pub-pos of the captured IPC publication, built anew: key, label and ids. */
static void check_same_stream_counter(fixture *on, const asi_counters *stock)
{
    const asi_stream_counter stream = {
        .type_id = ASI_COUNTER_TYPE_SUBSCRIBER_POSITION,
        .name = "sub-pos",
        .registration_id = 4,
        .counter_registration_id = 4,
        .owner_id = stock->values[60].owner_id,
        .reference_id = 6,
        .session_id = 1883060145,
        .stream_id = 1001,
        .channel = "aeron:ipc?term-length=64k|alias=golden-ipc",
        .suffix = " @0",
    };
    int32_t id;
    CHECK_I64(asi_counters_allocate_stream(&on->manager, &stream, 0, &id), AS_OK);
    CHECK(0 == memcmp(&on->counters.metadata[id], &stock->metadata[60], sizeof(asi_counter_metadata)));
    CHECK_I64(on->counters.values[id].registration_id, stock->values[60].registration_id);
    CHECK_I64(on->counters.values[id].reference_id, stock->values[60].reference_id);
}

static void agrees_with_a_stock_driver(void)
{
    char path[SCRATCH_CAPACITY + 16];
    const char *dir = scratch_folder();
    snprintf(path, sizeof(path), "%s/%s", dir, ASI_CNC_FILE);
    golden_unpack("shm/c-driver-cnc.sparse", path);
    asi_cnc cnc;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, dir), AS_OK);
    asi_counters stock;
    CHECK_I64(asi_counters_init(&stock, cnc.counters_metadata, cnc.lengths.counters_metadata, cnc.counters_values,
        cnc.lengths.counters_values), AS_OK);
    reads_stock_labels(&stock);

    fixture on = fixture_create(COUNT);
    const asi_system_labels labels = {
        .mode = "DEDICATED",
        .driver_name = "",
        .conductor_threshold_ns = 100000000,
        .sender_threshold_ns = 100000000,
        .receiver_threshold_ns = 100000000,
        .resolver_threshold_ns = 5000000000LL,
    };
    CHECK_I64(asi_counters_allocate_system(&on.manager, &labels, 0), AS_OK);
    for (int32_t id = 0; id < ASI_SYSTEM_COUNTER_COUNT; id++)
    {
        check_same_system_counter(&on.counters, &stock, id);
    }
    CHECK_I64(on.counters.values[ASI_SYSTEM_AERON_VERSION].value, stock.values[ASI_SYSTEM_AERON_VERSION].value);
    CHECK_I64(on.counters.values[ASI_SYSTEM_CONTROL_PROTOCOL_VERSION].value,
        stock.values[ASI_SYSTEM_CONTROL_PROTOCOL_VERSION].value);
    check_same_stream_counter(&on, &stock);
    CHECK_I64(asi_counters_allocate_system(&on.manager, &labels, 0), AS_E_USAGE);
    fixture_delete(&on);
    asi_cnc_close(&cnc);
}

static void cuts_long_channels(void)
{
    fixture on = fixture_create(COUNT);
    char channel[600];
    memset(channel, 'c', sizeof(channel) - 1);
    channel[sizeof(channel) - 1] = '\0';
    const asi_stream_counter stream = { .type_id = 1, .name = "pub-lmt", .channel = channel };
    int32_t id;
    CHECK_I64(asi_counters_allocate_stream(&on.manager, &stream, 0, &id), AS_OK);
    CHECK_I64(asi_get_i32(on.counters.metadata[id].key + 16), 92);
    CHECK_I64(on.counters.metadata[id].label_length, ASI_COUNTER_LABEL_CAPACITY);
    fixture_delete(&on);
}

int main(void)
{
    RUN(checks_sections);
    RUN(writes_the_specified_fields);
    RUN(an_id_changes_hands_in_order);
    RUN(cuts_long_keys_and_labels);
    RUN(appends_labels);
    RUN(reuses_ids_after_their_time_in_order);
    RUN(finds);
    RUN(agrees_with_a_stock_driver);
    RUN(cuts_long_channels);
    return 0;
}
