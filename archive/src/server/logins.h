/* Whose turn it is among the control sessions that are not let in yet, and which of them go when there are too many. Called by control.c.
 *
 * To look at one password takes tens of milliseconds, and whoever can reach the control channel can send as many as he likes. So passwords
 * are looked at one at a time, by turns of the addresses that they come from, and the turns of an address by turns of its connections: a
 * session's turn is the one after the last that its address was given, or the present one where that is later. Undecided sessions of one address are limited, and
 * when there is no room for another session at all, one of the address that has most of them goes. Addresses are told apart by a
 * hash of 1,024 values under a seed of the archive's, so that a request costs one look at each session. Thread rule: the conductor's. */
#ifndef ASI_SERVER_LOGINS_H
#define ASI_SERVER_LOGINS_H

#include "server/archive.h"

/* Gives a new session its source and its turn. */
void asi_logins_queue(asi_control_session *session);
/* Chooses the session whose password is looked at in this cycle. */
void asi_logins_choose(as_archive *archive);
/* Ends an undecided session if another one of `image` would be one too many. False: there is no room. */
bool asi_logins_make_room(as_archive *archive, const as_image *image);

#endif
