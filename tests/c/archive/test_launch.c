/* Goal: command lines of the stock archive are read as a Java launcher reads them. Method: the options that build files and test
 * suites use, with and without their value in the next argument. */
#include "check.h"
#include "server/launch.h"

static void options_of_a_virtual_machine(void)
{
    static const struct
    {
        const char *argument;
        int length;
    } ROWS[] = {
        { "-Xmx1g", 1 }, { "-XX:+UseSerialGC", 1 }, { "-XX:TieredStopAtLevel=1", 1 }, { "-Xlog:gc*", 1 }, { "-ea", 1 },
        { "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED", 1 }, { "--add-opens", 2 }, { "--add-exports", 2 },
        { "-cp", 2 }, { "-classpath", 2 }, { "--class-path", 2 }, { "--class-path=a.jar", 1 }, { "-jar", 2 },
        { "-javaagent:/opt/agent.jar=x", 1 }, { "-agentlib:jdwp=transport=dt_socket", 1 }, { "-server", 1 },
        { "--module-path", 2 }, { "--add-modules=jdk.unsupported", 1 }, { "--enable-preview", 1 },
        { "-Daeron.dir=/x", 0 }, { "--beside-driver", 0 }, { "-v", 0 }, { "--help", 0 }, { "-cpu", 0 }, { "-z", 0 },
        { "driver.properties", 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        if (ROWS[i].length != asi_launch_jvm_option(ROWS[i].argument))
        {
            fprintf(stderr, "%s\n", ROWS[i].argument);
        }
        CHECK_I64(asi_launch_jvm_option(ROWS[i].argument), ROWS[i].length);
    }
}

static void main_classes(void)
{
    CHECK_I64(asi_launch_main_class("io.aeron.archive.ArchivingMediaDriver"), ASI_MAIN_ARCHIVING_MEDIA_DRIVER);
    CHECK_I64(asi_launch_main_class("io.aeron.archive.Archive"), ASI_MAIN_ARCHIVE);
    CHECK_I64(asi_launch_main_class("io.aeron.driver.MediaDriver"), ASI_MAIN_OTHER);
    CHECK_I64(asi_launch_main_class("io.aeron.cluster.ClusteredMediaDriver"), ASI_MAIN_OTHER);
    CHECK_I64(asi_launch_main_class("archive.properties"), ASI_MAIN_NONE);
    CHECK_I64(asi_launch_main_class("/etc/io.aeron.properties"), ASI_MAIN_NONE);
}

int main(void)
{
    RUN(options_of_a_virtual_machine);
    RUN(main_classes);
    return 0;
}
