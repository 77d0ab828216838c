/* The receiver: one duty cycle that takes commands, reads every data socket, and sends the control frames that images have due.
 * Spec: 04 §4.2, §8.
 *
 * driver.c opens it and runs it on its own thread, together with the sender, or with all other agents. It owns the tables of
 * interest and its buffers. The conductor owns endpoints, destinations and images and lends them by commands (receiver_command.h
 * says when they return). Results go to the conductor as conductor_command. After opening it neither allocates nor locks.
 * Thread rule: one thread. */
#ifndef ASI_DRIVER_RX_RECEIVER_H
#define ASI_DRIVER_RX_RECEIVER_H

#include "driver/rx/receiver_state.h"

as_result asi_receiver_open(asi_receiver *receiver, const asi_receiver_params *params) AS_MUST_USE;
/* Runs one duty cycle; returns its work count. */
int asi_receiver_do_work(asi_receiver *receiver);
void asi_receiver_close(asi_receiver *receiver); /* no effect on a zeroed one */

#endif
