/* lwIP carries text in bulk: bulk FLOWS MILLISECONDS; MTU and buffers are those that it was built with. What is
 * measured is what src/bulk.rs measures of the others, and it answers in the same words.
 *
 * One stack is both hosts. What is written is lent to it, copied once, where it crosses the wire, and handed to
 * the reader as it arrived. Every byte of the first 4 MiB is compared with what was sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"

/* As in src/bulk/text.rs. */
enum { PIECE = 64 << 10, PERIOD = 262139 };
enum { CHECKED = 4 << 20, WARM_UP = 16 << 20, AT_ONCE = 4 << 20, MOST_FLOWS = 100, PLACES = 1 << 16 };
static unsigned char source[PERIOD];

unsigned long bench_msl = 60000;

struct flow { struct tcp_pcb *pcb; unsigned long long sent, read; };
static struct flow flows[MOST_FLOWS];
static unsigned long count;
static unsigned long long carried, frames;
static unsigned accepted, connected;
static int checking;
static struct netif server_if, client_if;
static struct packet { struct pbuf *p; struct netif *netif; } wire[PLACES];
static unsigned long wire_head, wire_tail;

u32_t sys_now(void) { return 0; }

static void check(int holds, const char *what)
{
  if (holds)
    return;
  fprintf(stderr, "lwip: %s\n", what);
  exit(1);
}

static double cpu_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static long faults(void)
{
  struct rusage usage;
  check(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
  return usage.ru_minflt;
}

static err_t transmit(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
  LWIP_UNUSED_ARG(to);
  check(wire_tail - wire_head < PLACES, "more packets are under way than there are places");
  frames += p->tot_len > 100;
  wire[wire_tail++ % PLACES] = (struct packet){pbuf_clone(PBUF_RAW, PBUF_RAM, p), netif};
  return ERR_OK;
}

static unsigned long carry(void)
{
  unsigned long before = wire_head;
  while (wire_head != wire_tail) {
    struct packet *next = &wire[wire_head++ % PLACES];
    check(next->p != NULL, "no memory for a packet");
    ip_input(next->p, next->netif);
  }
  return wire_head - before;
}

static err_t init_netif(struct netif *netif)
{
  netif->output = transmit;
  netif->mtu = BULK_MTU;
  netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
  return ERR_OK;
}

static void add_netif(struct netif *netif, unsigned host)
{
  ip4_addr_t own = {lwip_htonl(0x0a000000 + host)}, mask = {0xffffffff}, none = {0};
  check(netif_add(netif, &own, &mask, &none, NULL, init_netif, ip_input) != NULL, "netif_add");
}

static err_t on_text(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
  struct flow *flow = arg;
  check(error == ERR_OK && p != NULL, "a stream ended");
  for (struct pbuf *piece = p; piece; piece = piece->next) {
    for (unsigned at = 0; checking && at < piece->len; at++)
      check(((unsigned char *)piece->payload)[at] == source[(flow->read + at) % PERIOD], "other bytes than were sent");
    flow->read += piece->len;
  }
  carried += p->tot_len;
  tcp_recved(pcb, p->tot_len);
  pbuf_free(p);
  return ERR_OK;
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t error)
{
  LWIP_UNUSED_ARG(arg);
  check(error == ERR_OK && accepted < count, "accepting failed");
  /* They come in the order in which they were opened. */
  tcp_arg(pcb, &flows[accepted++]);
  tcp_recv(pcb, on_text);
  return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error)
{
  LWIP_UNUSED_ARG(arg), LWIP_UNUSED_ARG(pcb);
  check(error == ERR_OK, "connecting failed");
  connected++;
  return ERR_OK;
}

static void open_all(void)
{
  for (unsigned long i = 0; i < count; i++) {
    struct tcp_pcb *pcb = flows[i].pcb = tcp_new();
    check(pcb != NULL, "tcp_new");
    check(tcp_bind(pcb, &client_if.ip_addr, 40000 + i) == ERR_OK, "tcp_bind");
    check(tcp_connect(pcb, &server_if.ip_addr, 80, on_connected) == ERR_OK, "tcp_connect");
    carry();
  }
  check(connected == count && accepted == count, "not every connection was opened");
}

static void write_all(struct flow *flow)
{
  for (;;) {
    unsigned long at = flow->sent % PERIOD, len = LWIP_MIN(LWIP_MIN(PIECE - 1, PERIOD - at), tcp_sndbuf(flow->pcb));
    if (len == 0 || tcp_write(flow->pcb, source + at, len, 0) != ERR_OK)
      break;
    flow->sent += len;
  }
  check(tcp_output(flow->pcb) == ERR_OK, "tcp_output");
}

static void carry_text(unsigned long long bytes)
{
  for (unsigned long long goal = carried + bytes; carried < goal;) {
    unsigned long packets = 0;
    for (unsigned long i = 0; i < count; i++) {
      write_all(&flows[i]);
      packets += carry();
    }
    /* What acknowledgments wait for is over. */
    if (packets == 0)
      tcp_fasttmr();
  }
}

int main(int argc, char **argv)
{
  unsigned state = 1;
  check(argc == 3, "usage: bulk FLOWS MILLISECONDS");
  count = strtoul(argv[1], NULL, 10);
  check(count >= 1 && count <= MOST_FLOWS, "1 to 100 flows");
  for (unsigned i = 0; i < PERIOD; i++) {
    state = state * 1664525u + 1013904223u;
    source[i] = state >> 24;
  }
  lwip_init();
  add_netif(&client_if, 2);
  add_netif(&server_if, 1);
  struct tcp_pcb *listener = tcp_new();
  check(tcp_bind(listener, &server_if.ip_addr, 80) == ERR_OK, "tcp_bind");
  tcp_accept(tcp_listen(listener), on_accept);
  open_all();
  checking = 1;
  carry_text(CHECKED);
  checking = 0;
  carry_text(WARM_UP);
  unsigned long long carried_before = carried, frames_before = frames;
  long faults_before = faults();
  double begun = cpu_seconds(), spent;
  do {
    carry_text(AT_ONCE);
    spent = cpu_seconds() - begun;
  } while (spent < strtoul(argv[2], NULL, 10) / 1e3);
  printf("%g %g\n", (carried - carried_before) * 8 / spent / 1e9,
         (double)(faults() - faults_before) / (frames - frames_before));
  return 0;
}
