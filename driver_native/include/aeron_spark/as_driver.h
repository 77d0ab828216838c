/* Media driver: configure, start, poll, stop; runs alone (aeron-spark-driver), on threads of this process, or invoked.
 * Spec: 01 §1, 03 §13, 05 §7-8, §14-15.
 *
 * Settings go by the stock names, in either form ("aeron.dir" or "AERON_DIR"); a driver of ours started with a stock
 * environment behaves as the stock one.
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

/* Defaults, nothing read from outside. */
as_result as_driver_config_open(as_driver_config **config);
void as_driver_config_close(as_driver_config *config);
/* Sets one setting by property or environment name; an empty value goes back to the default. A name that is no driver setting
 * is accepted and ignored, as stock property files carry settings of other programs. AS_E_USAGE: the value can't be. */
as_result as_driver_config_set(as_driver_config *config, const char *name, const char *value);
/* Names of all driver settings, by index from 0: "aeron.dir"; NULL behind the last one. */
const char *as_driver_config_name(int64_t index);
/* Every setting present in the process environment. As in the stock driver, a value that can't be is warned of on stderr and the
 * default kept; so with property files. */
as_result as_driver_config_load_environment(as_driver_config *config);
/* A property file in the stock grammar (Spec: 05 §15). */
as_result as_driver_config_load_properties(as_driver_config *config, const char *path);
const char *as_driver_config_aeron_dir(const as_driver_config *config);
/* Prints the configuration as the stock driver's print-configuration does. */
as_result as_driver_config_print(const as_driver_config *config);

/* Called on the conductor's thread when TERMINATE_DRIVER passed the validator. */
typedef void (*as_on_termination)(void *context);

/* Checks the settings, claims the directory (AS_E_USAGE with the path and pid when a live driver owns it) and makes the CnC file
 * ready for clients. The config may be closed afterwards. */
as_result as_driver_open(
    const as_driver_config *config, as_on_termination on_termination, void *context, as_driver **driver);
/* Starts the agents' threads. In INVOKER mode there are none: call as_driver_do_work. */
as_result as_driver_start(as_driver *driver);
/* One duty cycle of all agents (INVOKER mode), or of the main thread's agent after as_driver_start_others. */
int as_driver_do_work(as_driver *driver);
/* As as_driver_start, but leaves the first agent (conductor or shared composite) to the calling thread, which runs it by
 * as_driver_run_main until `*keep_running` is false (loaded with acquire) or as_driver_is_idle_expired, with the configured
 * idle strategy. */
as_result as_driver_start_others(as_driver *driver);
void as_driver_run_main(as_driver *driver, const bool *keep_running);
const char *as_driver_aeron_dir(const as_driver *driver);
/* True when exit-when-idle is configured (aeron.spark.driver.exit.when.idle, a duration) and no client was there that long. */
bool as_driver_is_idle_expired(const as_driver *driver);
/* Stops the agents, frees log buffers, marks the CnC file closed, deletes the directory if so configured. Does nothing in a
 * forked child of the process that opened it. */
void as_driver_close(as_driver *driver);
/* CFFI-END */
/* Nobody is called unless this is set: the errors are in the directory's error log only. */
void as_driver_config_on_error(as_driver_config *config, as_on_logged_error on_error, void *context);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
