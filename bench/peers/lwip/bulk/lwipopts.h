/* The same for text in bulk: window scaling, and buffers and packets of the sizes that build.sh names; without
 * checksums where it says so. */
#ifndef BULK_LWIPOPTS_H
#define BULK_LWIPOPTS_H

#include "../lwipopts.h"

#undef TCP_MSS
#undef TCP_WND
#undef TCP_SND_BUF
#undef TCP_SND_QUEUELEN
#define TCP_MSS (BULK_MTU - 40)
#define LWIP_WND_SCALE 1
#define TCP_RCV_SCALE 5
#define TCP_WND BULK_BUFFER
#define TCP_SND_BUF BULK_BUFFER
/* Pieces of text and the headers before them. */
#define TCP_SND_QUEUELEN 0xfff0
#define TCP_SNDLOWAT 1
#define TCP_SNDQUEUELOWAT 0
/* No packet comes from this pool, whose packets may not have the largest MTU. */
#define PBUF_POOL_BUFSIZE 1600
/* It would have two segments fit into a send buffer, of which the largest here fills one. */
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1

#ifdef BULK_NO_CHECKSUMS
#define CHECKSUM_GEN_IP 0
#define CHECKSUM_GEN_TCP 0
#define CHECKSUM_CHECK_IP 0
#define CHECKSUM_CHECK_TCP 0
#endif

#endif
