/* Parses command lines written for the stock archive: `java <options> -cp aeron-all.jar -Daeron.dir=... <main class>
 * [propertiesFile]...` with `java` replaced by this program. Options of the virtual machine have no meaning here and are skipped.
 * The main class decides whether the process has a media driver. Called by main.c. Spec: 05 §15. Pure; any thread. */
#ifndef ASI_SERVER_LAUNCH_H
#define ASI_SERVER_LAUNCH_H

#include <stdbool.h>

typedef enum asi_main_class
{
    ASI_MAIN_NONE,                  /* no class: a properties file */
    ASI_MAIN_ARCHIVING_MEDIA_DRIVER,
    ASI_MAIN_ARCHIVE,               /* beside a running driver */
    ASI_MAIN_OTHER                  /* another main class of Aeron, not supported here */
} asi_main_class;

/* Number of arguments of an option of a virtual machine, itself included; 0: not such an option. */
int asi_launch_jvm_option(const char *argument);
asi_main_class asi_launch_main_class(const char *argument);

#endif
