/* lwIP as a library without threads, its memory from malloc, everything but TCP and UDP over IPv4 left
 * out.
 * What is not named has lwIP's default: no timestamps, no SACK, no window scaling, checksums
 * computed and verified. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_SOCKET 0
#define LWIP_NETCONN 0
#define LWIP_UDP 1
#define LWIP_RAW 0
#define LWIP_ICMP 0
#define LWIP_ARP 0
#define LWIP_STATS 1
#define IP_REASSEMBLY 0

#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 8

#define TCP_MSS 1460
#define TCP_WND 65535
#define TCP_SND_BUF 65535
#define TCP_SND_QUEUELEN 255

/* Linux' range and Whimbrel's. */
#define TCP_LOCAL_PORT_RANGE_START 32768
#define TCP_LOCAL_PORT_RANGE_END 61000
#define TCP_ENSURE_LOCAL_PORT_RANGE(port) (port)

/* How long TIME-WAIT lasts differs between cases. */
extern unsigned long bench_msl;
#define TCP_MSL bench_msl

#endif
