/* Polls, decodes and routes the requests of the control streams. See on_request.c. Thread rule: conductor only. */
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
    as_subscription *network;            /* the control streams; NULL: network control is off */
    as_subscription *local;
    as_fragment_assembler *assembler;
    asi_request *first;                  /* polled but not routed yet; oldest first */
    asi_request *last;
} asi_requests;

/* Polls both control streams and routes the requests. */
int asi_requests_step(as_archive *archive);
void asi_requests_close(as_archive *archive);

#endif
