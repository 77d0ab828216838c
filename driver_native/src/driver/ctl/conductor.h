/* The conductor: the one thread that owns every resource of the driver. Its duty cycle reads the clock once, takes at most one
 * client command, runs the timers when due, and moves the publications' limits. Spec: 03 §13.
 *
 * Called by driver.c, which opens it over a mapped CnC file and runs it on a thread, in the caller's, or invoked. The other
 * files of ctl/ are its parts and work on its state; they take the time from now_ns and now_ms, never from the clock.
 * Thread rule: one thread, except idle_expired, which any thread may load. */
#ifndef ASI_DRIVER_CTL_CONDUCTOR_H
#define ASI_DRIVER_CTL_CONDUCTOR_H

#include "base/clock.h"
#include "base/rand.h"
#include "driver/config.h"
#include "driver/ctl/list.h"
#include "driver/ctl/network.h"
#include "driver/events.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "shm/error_log.h"
#include "shm/ring_mpsc.h"

#define ASI_FAILURE_TEXT_CAPACITY 8192 /* Spec: 03 §4 - longer texts are cut */

typedef struct asi_peer_budget
{
    int64_t since_ns;
    int32_t taken;
} asi_peer_budget;

struct asi_conductor
{
    const asi_driver_settings *settings; /* borrowed from the driver, as are the sections of the CnC file below */
    asi_clock clock;
    asi_rand rand;
    asi_ring_mpsc to_driver;
    asi_broadcast to_clients;
    asi_counters_manager counters;
    asi_error_log errors;
    asi_events *events;       /* borrowed; NULL: no event log */
    as_on_termination on_termination; /* may be NULL */
    void *termination_context;

    int64_t now_ns;
    int64_t now_ms;           /* refreshed at most every millisecond */
    int64_t last_refresh_ns;  /* of now_ms */
    int64_t last_timer_ns;
    int64_t last_cycle_ns;    /* start of the last duty cycle */
    bool has_cycled;

    int64_t blocked_command_position; /* head of the ring when it was last seen to move */
    int64_t blocked_command_since_ns;

    asi_list clients;       /* of asi_driver_client, owned */
    asi_list publications;  /* of asi_ipc_publication, owned */
    asi_list subscriptions; /* of asi_subscription, owned */
    asi_list waiting_commands; /* of asi_waiting_command, owned; see log_files.h */
    int32_t next_session_id;
    asi_network network;

    asi_peer_budget peer_failures; /* see asi_peer_budget_takes */
    asi_peer_budget peer_publication_errors;

    int64_t idle_since_ns;     /* last time there was a client or a command */
    int64_t idle_allowance_ns; /* how long that may be ago; longer before the first client; INT64_MAX: for ever */
    bool idle_expired;        /* release by the conductor, acquire by whoever decides on the process */
};

/* Initialises ring, broadcast, counters and error log in a fresh CnC file and makes it ready for clients but for its version:
 * system counters, one correlation id consumed, heartbeat = now. Spec: 01 §1.3 steps 5-6. `mapped_bytes` is the first value
 * of "bytes currently mapped". */
as_result asi_conductor_open(asi_conductor *conductor, const asi_driver_settings *settings, asi_cnc *cnc, asi_clock clock,
    asi_rand rand, int64_t mapped_bytes) AS_MUST_USE;
/* One duty cycle; returns its work count. */
int asi_conductor_do_work(asi_conductor *conductor);
/* Deletes log buffers, releases counters, then marks the CnC file closed (heartbeat -1). */
void asi_conductor_close(asi_conductor *conductor);

/* Adds to a system counter. */
void asi_conductor_count(asi_conductor *conductor, int32_t system_counter_id, int64_t delta);
/* Puts this thread's last failure into the distinct error log. */
void asi_conductor_log_failure(asi_conductor *conductor, as_result result);
/* The same for failures that datagrams of anyone can cause, in texts of ever new numbers: they fill half of the log at most, and
 * those past the conductor's budget of peer failures are only counted. */
void asi_conductor_log_peer_failure(asi_conductor *conductor, as_result result);
/* False for more than 256 in a second. What datagrams of anyone make the driver write or tell its clients goes by a budget of its
 * kind: a flood must neither keep the conductor busy nor overrun the clients' broadcasts, nor hide what is of another kind. */
bool asi_peer_budget_takes(asi_peer_budget *budget, int64_t now_ns);
/* Wire code of this thread's last failure. Spec: 03 §4 - the protocol's own codes as they are, errnos as GENERIC or STORAGE. */
int32_t asi_conductor_failure_code(as_result result);
/* "(<code>) <short text>\n<text>\n" of this thread's last failure, the form of the stock C driver. */
void asi_conductor_failure_text(as_result result, char *to, size_t capacity);

#endif
