/* Goal: property files and defines are read by the stock grammar, and lines outside it are refused with their place.
 * Method: tables of text and result; files in a scratch directory; random files. Spec: 05 §15. */
#include "base/properties.h"

#include "support.h"

typedef struct collected
{
    char text[4096]; /* "name=value;" of each property */
} collected;

static as_result collect(void *context, const char *name, const char *value)
{
    collected *to = context;
    const size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof(to->text) - used, "%s=%s;", name, value);
    return 0 == strcmp(name, "refused") ? asi_fail(AS_E_USAGE, 3, "refused") : AS_OK;
}

static void reads_defines(void)
{
    static const struct { const char *text; as_result result; const char *got; } ROWS[] = {
        { "a=b", AS_OK, "a=b;" }, { " a \t: b c", AS_OK, "a=b c;" }, { "a=", AS_OK, "a=;" }, { "a=b=c", AS_OK, "a=b=c;" },
        { "a", AS_E_USAGE, "" }, { "", AS_E_USAGE, "" }, { "=b", AS_E_USAGE, "" }, { "  :b", AS_E_USAGE, "" }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        collected got = { 0 };
        CHECK_I64(asi_property_parse_untrusted(ROWS[i].text, collect, &got), ROWS[i].result);
        CHECK_TEXT(got.text, ROWS[i].got);
    }
}

static as_result load(const char *dir, const char *bytes, size_t length, collected *got)
{
    char path[SCRATCH_CAPACITY + 16];
    snprintf(path, sizeof(path), "%s/properties", dir);
    FILE *file = fopen(path, "wb");
    CHECK(NULL != file);
    CHECK(length == fwrite(bytes, 1, length, file));
    CHECK(0 == fclose(file));
    *got = (collected){ 0 };
    return asi_properties_load_untrusted(path, collect, got);
}

static void reads_files(void)
{
    static const struct { const char *text; as_result result; const char *got; const char *place; } ROWS[] = {
        { "", AS_OK, "", NULL },
        { "# comment\n! comment\n\n  \na=1\n", AS_OK, "a=1;", NULL },
        { "a=1\r\nb:2\r\n", AS_OK, "a=1;b=2;", NULL },
        { "a=1,\\\n   2,\\\n  3\n", AS_OK, "a=1,2,3;", NULL },
        { "a=1\nb\nc=3\n", AS_E_USAGE, "a=1;", ":2" },
        { "a=1\nrefused=1\nc=3\n", AS_E_USAGE, "a=1;refused=1;", ":2" },
        { "a=1\nb=2", AS_E_USAGE, "a=1;", ":2" },
        { "a=1\\\n", AS_E_USAGE, "", "continued" },
    };
    const char *dir = scratch_folder();
    collected got;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        CHECK_I64(load(dir, ROWS[i].text, strlen(ROWS[i].text), &got), ROWS[i].result);
        CHECK_TEXT(got.text, ROWS[i].got);
        CHECK(NULL == ROWS[i].place || NULL != strstr(as_error_text(), ROWS[i].place));
    }
    static char longest[2 * 2048];
    memset(longest, 'x', sizeof(longest));
    longest[1] = '=';
    longest[2046] = '\n';
    CHECK_I64(load(dir, longest, 2047, &got), AS_OK);
    longest[2046] = 'x';
    longest[2047] = '\n';
    CHECK_I64(load(dir, longest, 2048, &got), AS_E_USAGE);
    CHECK_I64(asi_properties_load_untrusted("/dev/shm/aeron-spark-no-such-file", collect, &got), AS_E_STORAGE);

    static const char SPICE[] = "a=b:#!\\\n\r \t\0xyz";
    asi_rand rand = test_rand();
    for (int round = 0; round < 2000; round++)
    {
        char bytes[300];
        for (size_t i = 0; i < sizeof(bytes); i++)
        {
            bytes[i] = SPICE[test_rand_below(&rand, sizeof(SPICE) - 1)];
        }
        const as_result result = load(dir, bytes, sizeof(bytes), &got);
        CHECK(AS_OK == result || AS_E_USAGE == result);
    }
}

int main(void)
{
    RUN(reads_defines);
    RUN(reads_files);
    return 0;
}
