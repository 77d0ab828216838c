/* Whose turn it is among the control sessions that are not let in yet, and which of them go when there are too many. Called by control.c.
 *
 * To look at one password takes tens of milliseconds, and whoever can reach the control channel can send as many as he likes. So passwords
 * are looked at one at a time, by turns of the addresses that they come from, and the turns of an address by turns of its connections: a
 * session's turn is the one after the last that its address was given, or the present one where that is later.
 *
 * Anybody can write any address on a request. So a session's publication of answers is opened first, with the smallest terms, and its
 * password is looked at once somebody there listens: only the address itself can see to that. Where a publication can't be opened before
 * the login, or would prove nothing (asi_channel_proves_source), the address stays unproven. There are three classes, which alternate while
 * they have somebody waiting: addresses proven, proven ones that had a wrong password within the last minute, and unproven ones. So
 * each class has a third of the time at least, whatever the others do, and nobody is locked out: who shares an address with an attacker
 * waits in the turns of that address for what came before him, which the limit of undecided sessions bounds.
 *
 * Undecided sessions of one address are limited, and when there is no room for another session at all, one goes of the proven or of the
 * others, whichever are more, and of these of the address that has most of them. Addresses are told apart by a hash of 1,024 values under
 * a seed of the archive's, so that a request costs one look at each session. Thread rule: the conductor's. */
#ifndef ASI_SERVER_LOGINS_H
#define ASI_SERVER_LOGINS_H

#include "server/session.h"

#define ASI_LOGIN_SOURCES 1024 /* that are told apart */

typedef struct asi_logins
{
    int64_t deciding_session_id;         /* whose password is looked at; AS_NULL_VALUE: none */
    asi_login_class deciding_class;      /* of the last that was chosen */
    int64_t deciding_turns[ASI_LOGIN_CLASSES];
    int64_t deciding_image_turn;
    int64_t source_turns[ASI_LOGIN_CLASSES][ASI_LOGIN_SOURCES]; /* the last ones given */
    int64_t source_failures_ns[ASI_LOGIN_SOURCES]; /* until when a wrong password of a source counts; 0: none */
    int64_t image_turns[ASI_LOGIN_SOURCES];
    uint64_t source_seed;                /* of the hash by which sources are told apart */
} asi_logins;

/* Gives a new session its source, and a turn among the connections of it. */
void asi_logins_begin(asi_control_session *session);
/* Its password waits to be looked at. */
void asi_logins_queue(asi_control_session *session, int64_t now_ns);
/* It was wrong. */
void asi_logins_on_wrong(const asi_control_session *session, int64_t now_ns);
/* Chooses the session whose password is looked at in this cycle. */
void asi_logins_choose(as_archive *archive);
/* Ends an undecided session if another one of `image` would be one too many. False: there is no room. */
bool asi_logins_make_room(as_archive *archive, const as_image *image);

#endif
