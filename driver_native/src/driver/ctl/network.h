/* The conductor's state for UDP: mail to sender and receiver, channel endpoints, network publications and images.
 *
 * Member of the conductor; opened and closed by driver.c together with the agents. Mail to an agent whose box is full waits in
 * an outbox of the conductor's own, in order, so that no command is lost however many resources one client leaves behind.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_H
#define ASI_DRIVER_CTL_NETWORK_H

#include "base/map.h"
#include "base/rota.h"
#include "driver/ctl/list.h"
#include "driver/ctl/names.h"
#include "driver/mail/conductor_mail.h"
#include "driver/mail/receiver_mail.h"
#include "driver/mail/sender_mail.h"
#include "driver/net/udp_channel.h"
#include "driver/net/udp_socket.h"
#include "shm/loss_report.h"

typedef struct asi_conductor asi_conductor;

typedef struct asi_network
{
    asi_udp_ops send_ops;        /* of sockets that the sender uses */
    asi_udp_ops receive_ops;     /* and the receiver */
    asi_udp_ops own_ops;         /* of sockets of the conductor's own */
    asi_names names;
    asi_name_resolver resolver;  /* over names */
    asi_socket_limits limits;
    asi_mailbox *to_sender;      /* borrowed from the driver, as the next two */
    asi_mailbox *to_receiver;
    asi_mailbox *from_agents;
    asi_list sender_outbox;      /* of asi_sender_mail, owned */
    asi_list receiver_outbox;    /* of asi_receiver_mail, owned */
    int64_t next_unique_suffix;
    int64_t next_id;             /* of endpoints and receive destinations, for mail */
    int64_t next_receiver_id;
    uint16_t next_sender_port;   /* of the managed ranges; 0 at first */
    uint16_t next_receiver_port;
    asi_list send_channels;      /* of asi_send_channel, owned; closing ones included until the sender gives them back */
    asi_list receive_channels;   /* of asi_receive_channel, owned; likewise */
    int32_t closing_send_count;  /* of the channels, those that close; without any, no cycle looks for them */
    int32_t closing_receive_count; /* likewise, their destinations included */
    asi_list publications;       /* of asi_network_publication, owned */
    asi_list images;             /* of asi_network_image, owned */
    asi_rota publication_rota;
    asi_rota image_rota;
    asi_loss_report loss_report;
} asi_network;

typedef struct asi_network_params
{
    asi_udp_ops send_ops;        /* of sockets that the sender uses */
    asi_udp_ops receive_ops;     /* and the receiver */
    asi_udp_ops own_ops;
    asi_name_resolver resolver; /* the system's */
    asi_socket_limits limits;
    asi_mailbox *to_sender;
    asi_mailbox *to_receiver;
    asi_mailbox *from_agents;
    asi_map *loss_report;
} asi_network_params;

/* Parses a UDP channel with the driver's resolver and interfaces. */
as_result asi_network_parse_channel(asi_conductor *conductor, const char *text, int64_t length, bool is_destination,
    asi_udp_channel **channel) AS_MUST_USE;
as_result asi_network_open(asi_conductor *conductor, const asi_network_params *params) AS_MUST_USE;
/* Frees everything; sender and receiver must have stopped. */
void asi_network_close(asi_conductor *conductor);
/* Each duty cycle: mail both ways, what agents gave back, streams. Returns the work count. */
int asi_network_do_work(asi_conductor *conductor);
void asi_network_on_timer(asi_conductor *conductor);
void asi_network_to_sender(asi_conductor *conductor, const asi_sender_mail *mail);
void asi_network_to_receiver(asi_conductor *conductor, const asi_receiver_mail *mail);

#endif
