/* See launch.h. */
#include "server/launch.h"

#include <stddef.h>
#include <string.h>

/* Options with a value in the next argument, or after '=' in the same one. */
static const char *const WITH_VALUE[] = { "-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path",
    "--add-modules", "--limit-modules", "--add-opens", "--add-exports", "--add-reads", "--patch-module",
    "--enable-native-access", "-jar" };

static const char *const PREFIXES[] = { "-X", "-ea", "-da", "-enableassertions", "-disableassertions", "-esa", "-dsa",
    "-enablesystemassertions", "-disablesystemassertions", "-javaagent:", "-agentlib:", "-agentpath:", "-verbose", "-server",
    "-client", "-splash:", "--enable-preview", "--illegal-access=", "--sun-misc-unsafe-memory-access=", "--finalization=",
    "--source" };

static bool begins_with(const char *text, const char *prefix)
{
    return 0 == strncmp(text, prefix, strlen(prefix));
}

int asi_launch_jvm_option(const char *argument)
{
    for (size_t i = 0; i < sizeof(WITH_VALUE) / sizeof(WITH_VALUE[0]); i++)
    {
        if (0 == strcmp(argument, WITH_VALUE[i]))
        {
            return 2;
        }
        if (begins_with(argument, WITH_VALUE[i]) && '=' == argument[strlen(WITH_VALUE[i])])
        {
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof(PREFIXES) / sizeof(PREFIXES[0]); i++)
    {
        if (begins_with(argument, PREFIXES[i]))
        {
            return 1;
        }
    }
    return 0;
}

asi_main_class asi_launch_main_class(const char *argument)
{
    if (0 == strcmp(argument, "io.aeron.archive.ArchivingMediaDriver"))
    {
        return ASI_MAIN_ARCHIVING_MEDIA_DRIVER;
    }
    if (0 == strcmp(argument, "io.aeron.archive.Archive"))
    {
        return ASI_MAIN_ARCHIVE;
    }
    return begins_with(argument, "io.aeron.") ? ASI_MAIN_OTHER : ASI_MAIN_NONE;
}
