/* The receiver: one duty cycle that takes a command, reads every data socket, and sends what images owe their publishers.
 * Spec: 04 §4.2, §8.
 *
 * Called by driver.c, which opens it and runs it on a thread, together with the sender, or with all others. It owns the tables of
 * interest and its buffers; endpoints, destinations and images are the conductor's, lent by commands (receiver_command.h tells
 * when they go back). What it finds out for the conductor goes by conductor_command. After opening it neither allocates nor locks.
 * Thread rule: one thread. */
#ifndef ASI_DRIVER_RX_RECEIVER_H
#define ASI_DRIVER_RX_RECEIVER_H

#include "driver/rx/receiver_state.h"

as_result asi_receiver_open(asi_receiver *receiver, const asi_receiver_params *params) AS_MUST_USE;
/* One duty cycle; returns its work count. */
int asi_receiver_do_work(asi_receiver *receiver);
void asi_receiver_close(asi_receiver *receiver); /* harmless on a zeroed one */

#endif
