/* Media driver: configure, start, poll, stop. It runs as a process (aeron-spark-driver), on threads of this process, or
 * invoked. Spec: 01 §1, 03 §13, 05 §7-8, §14-15.
 *
 * Settings use the stock names, in either form ("aeron.dir" or "AERON_DIR"). Our driver behaves as the stock driver in the
 * same environment.
 * Thread rule: a config has one owner. Open, start and close a driver from one thread; as_driver_do_work from one thread. */
#ifndef AERON_SPARK_AS_DRIVER_H
#define AERON_SPARK_AS_DRIVER_H

#include "aeron_spark/as_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
typedef struct as_driver_config as_driver_config;
typedef struct as_driver as_driver;

/* Creates a config with the defaults. Reads nothing from outside. */
as_result as_driver_config_open(as_driver_config **config) AS_MUST_USE;
void as_driver_config_close(as_driver_config *config);
/* Sets one setting by property or environment name. An empty value restores the default. A name that is not a driver setting
 * is accepted and ignored, because stock property files contain settings of other programs. AS_E_USAGE: the value is invalid. */
as_result as_driver_config_set(as_driver_config *config, const char *name, const char *value) AS_MUST_USE;
/* Names of all driver settings, by index from 0: "aeron.dir"; NULL after the last one. */
const char *as_driver_config_name(int64_t index);
typedef void (*as_on_setting)(void *context, const char *name, const char *value);
/* Reports each setting that differs from its default; numbers in their smallest unit: bytes, nanoseconds. */
void as_driver_config_changed(const as_driver_config *config, as_on_setting on_setting, void *context);
/* Loads every setting that is present in the process environment. As in the stock driver, an invalid value causes a warning
 * on stderr and keeps the default; the same holds for property files. */
as_result as_driver_config_load_environment(as_driver_config *config) AS_MUST_USE;
/* Loads a property file in the stock grammar (Spec: 05 §15). */
as_result as_driver_config_load_properties(as_driver_config *config, const char *path) AS_MUST_USE;
const char *as_driver_config_aeron_dir(const as_driver_config *config);
/* Prints the configuration in the format of the stock driver's print-configuration. */
as_result as_driver_config_print(const as_driver_config *config) AS_MUST_USE;

/* Called on the conductor's thread when the validator has accepted TERMINATE_DRIVER. */
typedef void (*as_on_termination)(void *context);

/* Checks the settings, claims the directory and makes the CnC file ready for clients. AS_E_USAGE: a live driver owns the
 * directory; the text has its path and pid. The config may be closed afterwards. */
as_result as_driver_open(
    const as_driver_config *config, as_on_termination on_termination, void *context, as_driver **driver) AS_MUST_USE;
/* Starts the agents' threads. In INVOKER mode there are none: call as_driver_do_work. */
as_result as_driver_start(as_driver *driver) AS_MUST_USE;
/* Runs one duty cycle of all agents (INVOKER mode), or of the main thread's agent after as_driver_start_others. */
int as_driver_do_work(as_driver *driver);
/* As as_driver_start, but leaves the first agent (conductor or shared composite) to the calling thread. That thread runs it
 * by as_driver_run_main, with the configured idle strategy, until `*keep_running` is false (loaded with acquire) or
 * as_driver_is_idle_expired. */
as_result as_driver_start_others(as_driver *driver) AS_MUST_USE;
void as_driver_run_main(as_driver *driver, const bool *keep_running);
const char *as_driver_aeron_dir(const as_driver *driver);
/* True if exit-when-idle is configured (aeron.spark.driver.exit.when.idle, a duration) and the driver has had no client for
   that long. */
bool as_driver_is_idle_expired(const as_driver *driver);
/* Stops the agents, frees log buffers and marks the CnC file closed. Deletes the directory if so configured. Does nothing in
 * a forked child of the process that opened the driver. */
void as_driver_close(as_driver *driver);
/* CFFI-END */
/* Sets the handler for logged errors. Without one, errors are only in the directory's error log. */
void as_driver_config_on_error(as_driver_config *config, as_on_logged_error on_error, void *context);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
