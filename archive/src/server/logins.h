/* Schedules the password checks of control sessions that are not accepted yet, and ends some of these when there are too many.
 * Called by control.c.
 *
 * One password check takes tens of milliseconds, and any host that reaches the control channel can send any number of passwords.
 * Passwords are therefore checked one at a time, in a round-robin over source addresses and, within an address, over its
 * connections. A session's slot number (`turn`) is the one after the last that its address was given, or the current number when
 * that is higher.
 *
 * Any host can forge the source address of a request. A session therefore first opens its response publication, with the
 * smallest terms, and its password is checked once that publication has a subscriber: only the owner of the address can provide
 * one. The address stays unproven when a publication can't be opened before the login or would prove nothing
 * (asi_channel_proves_source). There are three classes: proven addresses, proven addresses with a wrong password within the last
 * minute, and unproven addresses. The scheduler alternates between the classes that have waiting sessions. Each class therefore
 * gets at least a third of the time, whatever the others do, and no client is locked out: a client that shares its address with
 * an attacker waits only for the earlier sessions of that address, and the limit of undecided sessions bounds these.
 *
 * The number of undecided sessions per address is limited. When there is no room for another session at all, one is ended: from
 * the larger of the two groups of proven and unproven addresses, and within it from the address with the most sessions.
 * Addresses are distinguished by a hash with 1,024 values and a seed of the archive, so that a request needs one check per
 * session. Thread rule: conductor only. */
#ifndef ASI_SERVER_LOGINS_H
#define ASI_SERVER_LOGINS_H

#include "server/session.h"

#define ASI_LOGIN_SOURCES 1024 /* number of hash values that distinguish sources */

typedef struct asi_logins
{
    int64_t deciding_session_id;         /* session whose password is being checked; AS_NULL_VALUE: none */
    asi_login_class deciding_class;      /* class of the session chosen last */
    int64_t deciding_turns[ASI_LOGIN_CLASSES];
    int64_t deciding_image_turn;
    int64_t source_turns[ASI_LOGIN_CLASSES][ASI_LOGIN_SOURCES]; /* last slot number issued, by class and source */
    int64_t source_failures_ns[ASI_LOGIN_SOURCES]; /* time until which a wrong password of a source counts; 0: none */
    int64_t image_turns[ASI_LOGIN_SOURCES];
    uint64_t source_seed;                /* seed of the hash that distinguishes sources */
} asi_logins;

/* Assigns a new session its source, and a round-robin slot among that source's connections. */
void asi_logins_begin(asi_control_session *session);
/* Queues the session for its password check. */
void asi_logins_queue(asi_control_session *session, int64_t now_ns);
/* Records a wrong password of the session. */
void asi_logins_on_wrong(const asi_control_session *session, int64_t now_ns);
/* Chooses the session whose password is checked in this cycle. */
void asi_logins_choose(as_archive *archive);
/* Ends an undecided session if another one of `image` would exceed a limit. False: there is no room. */
bool asi_logins_make_room(as_archive *archive, const as_image *image);

#endif
