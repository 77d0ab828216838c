/* See names.h. */
#include "driver/ctl/names.h"

#include <inttypes.h>

#include "driver/ctl/report.h"
#include "driver/ctl/state.h"
#include "wire/command.h"

static as_result look_up(
    asi_conductor *conductor, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    const asi_names *names = conductor->network.names;
    const asi_name_resolver *system = &conductor->network.system_resolver;
    char host[ASI_HOST_CAPACITY];
    if (NULL != names->gossip && asi_gossip_find(names->gossip, name, address))
    {
        return AS_OK;
    }
    switch (asi_host_table_find(&names->table, &conductor->counters.counters, name, host))
    {
        case ASI_HOST_FAILED: return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "Unable to resolve host=(%s): (forced)", name);
        case ASI_HOST_FOUND:
            if (asi_address_parse_literal(host, address))
            {
                return AS_OK;
            }
            return system->resolve(system->context, host, param, is_re_resolution, address);
        default: return system->resolve(system->context, name, param, is_re_resolution, address);
    }
}

/* `address` is NULL when the name was not found. */
static void log_resolved(
    asi_conductor *conductor, const char *name, bool is_re_resolution, int64_t elapsed_ns, const asi_address *address)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY] = "unresolved";
    if (!asi_events_has(conductor->events, ASI_EVENT_NAME_RESOLUTION_RESOLVE))
    {
        return;
    }
    if (NULL != address)
    {
        asi_address_format(address, text);
    }
    asi_events_log(conductor->events, ASI_EVENT_NAME_RESOLUTION_RESOLVE,
        "resolver=%s durationNs=%" PRId64 " name=%s isReResolution=%s address=%s", conductor->settings->name_resolver, elapsed_ns,
        name, is_re_resolution ? "true" : "false", text);
}

/* Resolving blocks every stream of the driver, so slow calls are counted. */
static as_result resolve_timed(
    void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    asi_conductor *conductor = context;
    const int64_t start_ns = asi_clock_ns(&conductor->clock);
    const as_result result = look_up(conductor, name, param, is_re_resolution, address);
    const int64_t elapsed_ns = asi_clock_ns(&conductor->clock) - start_ns;
    log_resolved(conductor, name, is_re_resolution, elapsed_ns, AS_OK == result ? address : NULL);
    int64_t *max = asi_counter_addr(&conductor->counters.counters, ASI_SYSTEM_RESOLVER_MAX_TIME);
    if (elapsed_ns > asi_load_relaxed_i64(max)) /* the conductor is its only writer */
    {
        asi_store_release_i64(max, elapsed_ns);
    }
    if (elapsed_ns > conductor->settings->name_resolver_threshold_ns)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_RESOLVER_EXCEEDED, 1);
    }
    return result;
}

asi_name_resolver asi_names_resolver(asi_conductor *conductor)
{
    return (asi_name_resolver){ .resolve = resolve_timed, .context = conductor };
}

static bool is_any_of(const char *text, const char *a, const char *b)
{
    return 0 == strcmp(text, a) || 0 == strcmp(text, b);
}

as_result asi_names_open(asi_conductor *conductor, asi_name_resolver system)
{
    const asi_driver_settings *settings = conductor->settings;
    const char *supplier = settings->name_resolver;
    asi_names *names = calloc(1, sizeof(*names));
    if (NULL == names)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the name resolver");
    }
    conductor->network.names = names;
    conductor->network.system_resolver = system;
    const bool is_driver = is_any_of(supplier, "driver", "aeron_driver_name_resolver_supplier");
    if (is_any_of(supplier, "csv_table", "aeron_csv_table_name_resolver_supplier"))
    {
        return asi_host_table_open(&names->table, conductor, settings->name_resolver_args);
    }
    if (!is_driver && !is_any_of(supplier, "default", "aeron_default_name_resolver_supplier"))
    {
        return asi_fail(AS_E_USAGE, EINVAL,
            "aeron.name.resolver.supplier=%s is none of default, driver and csv_table", supplier);
    }
    if ('\0' == settings->resolver_interface[0])
    {
        return !is_driver ? AS_OK : asi_fail(AS_E_USAGE, EINVAL, "aeron.name.resolver.supplier=driver needs "
            "aeron.driver.resolver.name and aeron.driver.resolver.interface");
    }
    return asi_gossip_open(conductor, &names->gossip);
}

void asi_names_close(asi_conductor *conductor)
{
    asi_names *names = conductor->network.names;
    if (NULL != names)
    {
        asi_host_table_close(&names->table, conductor);
        asi_gossip_close(conductor, names->gossip);
        free(names);
        conductor->network.names = NULL;
    }
}

int asi_names_do_work(asi_conductor *conductor)
{
    asi_gossip *gossip = conductor->network.names->gossip;
    return NULL == gossip ? 0 : asi_gossip_do_work(conductor, gossip);
}
