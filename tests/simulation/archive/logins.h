/* Users of an archive with logins, and their answers to challenges. Spec: 07 §7. */
#ifndef AS_SIM_ARCHIVE_LOGINS_H
#define AS_SIM_ARCHIVE_LOGINS_H

#include "base/sha256.h"

#define LOGIN_ANSWER_CAPACITY (2 * ASI_SHA256_LENGTH + 1)
#define HONEST_USER "alice"
#define HONEST_PASSWORD "open sesame"
#define GUEST_CREDENTIALS "guest:guest"

/* A credentials file: `alice` may do everything, `guest` ask questions. */
void logins_write(const char *path);
/* alice's, to a challenge of the archive. */
void logins_answer(const char *challenge, char answer[LOGIN_ANSWER_CAPACITY]);

#endif
