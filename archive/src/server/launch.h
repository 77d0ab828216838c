/* Command lines written for the stock archive: `java <options> -cp aeron-all.jar -Daeron.dir=... <main class> [propertiesFile]...`
 * with `java` replaced by this program. Options of the virtual machine have no meaning here and are passed over; the main class says
 * whether there is a media driver in the process. Called by main.c. Spec: 05 §15. Pure; any thread. */
#ifndef ASI_SERVER_LAUNCH_H
#define ASI_SERVER_LAUNCH_H

#include <stdbool.h>

typedef enum asi_main_class
{
    ASI_MAIN_NONE,                  /* no class: a properties file */
    ASI_MAIN_ARCHIVING_MEDIA_DRIVER,
    ASI_MAIN_ARCHIVE,               /* beside a running driver */
    ASI_MAIN_OTHER                  /* of Aeron, and not served here */
} asi_main_class;

/* How many arguments the option takes, itself included; 0: it is none of a virtual machine. */
int asi_launch_jvm_option(const char *argument);
asi_main_class asi_launch_main_class(const char *argument);

#endif
