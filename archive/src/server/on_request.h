/* Requests of the control streams: polled, decoded and routed. See on_request.c. Thread rule: the conductor's. */
#ifndef ASI_SERVER_ON_REQUEST_H
#define ASI_SERVER_ON_REQUEST_H

#include "server/archive.h"

typedef struct asi_request
{
    struct asi_request *next;
    as_image *image;  /* retained */
    int64_t length;
    uint8_t bytes[];
} asi_request;

typedef struct asi_requests
{
    as_subscription *network;            /* control streams; NULL: network control is off */
    as_subscription *local;
    as_fragment_assembler *assembler;
    asi_request *first;                  /* polled, not routed yet; oldest first */
    asi_request *last;
} asi_requests;

/* Polls both control streams and routes what came. */
int asi_requests_step(as_archive *archive);
void asi_requests_close(as_archive *archive);

#endif
