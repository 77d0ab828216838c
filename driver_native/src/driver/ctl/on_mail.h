/* What sender and receiver tell the conductor, one handler a kind. Called by network.c. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_ON_MAIL_H
#define ASI_DRIVER_CTL_ON_MAIL_H

#include "driver/ctl/state.h"

void asi_on_mail(asi_conductor *conductor, const asi_conductor_mail *mail);

#endif
