/* lwIP does a case: bench CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB, as src/case.rs has it. The steps
 * are those of src/peers/host.rs.
 *
 * lwIP's state is static, so one stack is both hosts: they have an address each, and what one sends
 * to the other is copied and comes in as if from a device. Each list of connections holds both ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/stats.h"
#include "lwip/tcp.h"
#include "lwip/udp.h"

enum { AT_A_TIME = 64, WARM_UP = 1000, MOST_MEASURED = 200000, STAGED = 256 };
enum { MOST_ADDRESSES = 600, PORTS_OF_ONE = 20000, FIRST_PORT = 1024, PORTS = 60000, FRAME = 40, SYN_FRAME = 44 };
static const char request[64] = {[0 ... 63] = 'q'}, response[256] = {[0 ... 255] = 'r'};

unsigned long bench_msl = 60000;

static struct netif server_if, client_ifs[MOST_ADDRESSES];
static unsigned long addresses = 1, opened, established, done, up, down, fill_ms, measure_ms, mebibytes;
static struct packet { struct pbuf *p; struct netif *netif; } *wire;
static unsigned long wire_head, wire_tail, wire_places;
static int discarding, keeping, idle;
static unsigned char (*kept)[FRAME];
static unsigned long kept_count;

u32_t sys_now(void) { return 0; }

static void fail(const char *what)
{
  fprintf(stderr, "lwip: %s\n", what);
  exit(1);
}

static void check(int holds, const char *what)
{
  if (!holds)
    fail(what);
}

static double cpu_us(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static double resident(void)
{
  long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  check(statm && fscanf(statm, "%*d %ld", &pages) == 1, "/proc/self/statm cannot be read");
  fclose(statm);
  return (double)pages * sysconf(_SC_PAGESIZE);
}

static unsigned below(unsigned long bound)
{
  static unsigned long long state = 1;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return ((state >> 32) * bound) >> 32;
}

/* --- the wire */

static err_t transmit(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
  LWIP_UNUSED_ARG(to);
  if (discarding)
    return ERR_OK;
  if (keeping && netif == &server_if && p->tot_len == FRAME) {
    unsigned char frame[FRAME];
    pbuf_copy_partial(p, frame, FRAME, 0);
    if (frame[33] == TCP_ACK)
      memcpy(kept[kept_count++], frame, FRAME);
  }
  if (wire_tail - wire_head == wire_places)
    fail("more packets are under way than there are places");
  wire[wire_tail++ % wire_places] = (struct packet){pbuf_clone(PBUF_RAW, PBUF_RAM, p), netif};
  return ERR_OK;
}

static void carry(void)
{
  while (wire_head != wire_tail) {
    struct packet *next = &wire[wire_head++ % wire_places];
    ip_input(next->p, next->netif);
  }
}

static err_t init_netif(struct netif *netif)
{
  netif->output = transmit;
  netif->mtu = 1500;
  netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
  return ERR_OK;
}

static void add_netif(struct netif *netif, unsigned host)
{
  ip4_addr_t own = {lwip_htonl(0x0a000000 + host)}, mask = {0xffffffff}, none = {0};
  check(netif_add(netif, &own, &mask, &none, NULL, init_netif, ip_input) != NULL, "netif_add");
}

/* --- the applications; the argument of a connection is how many bytes it read */

static unsigned long read_all(struct tcp_pcb *pcb, void *arg, struct pbuf *p, const char *wanted)
{
  unsigned long had = (unsigned long)arg;
  for (struct pbuf *piece = p; piece; piece = piece->next) {
    check(memcmp(piece->payload, wanted + had, piece->len) == 0, "bytes that were not sent");
    had += piece->len;
  }
  tcp_recved(pcb, p->tot_len);
  pbuf_free(p);
  tcp_arg(pcb, (void *)had);
  return had;
}

static err_t on_request(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
  check(error == ERR_OK, "server: receiving failed");
  if (!p)
    return ERR_OK;
  up += p->tot_len;
  if (read_all(pcb, arg, p, request) == sizeof request) {
    check(tcp_write(pcb, response, sizeof response, TCP_WRITE_FLAG_COPY) == ERR_OK, "tcp_write");
    check(tcp_close(pcb) == ERR_OK, "tcp_close");
  }
  return ERR_OK;
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t error)
{
  LWIP_UNUSED_ARG(arg);
  check(error == ERR_OK, "accepting failed");
  tcp_arg(pcb, NULL);
  tcp_recv(pcb, on_request);
  return ERR_OK;
}

static err_t on_response(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
  check(error == ERR_OK, "client: receiving failed");
  if (p) {
    down += p->tot_len;
    read_all(pcb, arg, p, response);
  } else {
    check((unsigned long)arg == sizeof response, "the end came before the response");
    check(tcp_close(pcb) == ERR_OK, "tcp_close");
    done++;
  }
  return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error)
{
  LWIP_UNUSED_ARG(arg);
  check(error == ERR_OK, "connecting failed");
  established++;
  tcp_recv(pcb, on_response);
  if (idle)
    return ERR_OK;
  check(tcp_write(pcb, request, sizeof request, TCP_WRITE_FLAG_COPY) == ERR_OK, "tcp_write");
  return ERR_OK;
}

/* lwIP draws ports for the whole host, 28,232 in all, whatever address they are bound to. So each
 * connection is given an address and a port that were not used for the longest. */
static void open_one(void)
{
  unsigned long of = opened % addresses, port = FIRST_PORT + opened / addresses % PORTS;
  struct tcp_pcb *pcb = tcp_new();
  check(pcb != NULL, "tcp_new");
  check(tcp_bind(pcb, &client_ifs[of].ip_addr, port) == ERR_OK, "tcp_bind");
  opened++;
  check(tcp_connect(pcb, &server_if.ip_addr, 80, on_connected) == ERR_OK, "tcp_connect");
}

/* --- what a case is made of */

static unsigned long waiting(void)
{
  unsigned long count = 0;
  for (struct tcp_pcb *pcb = tcp_tw_pcbs; pcb; pcb = pcb->next)
    count++;
  return count;
}

/* Connections after which lwIP's timers run: TIME-WAIT lasts eight times that. Never if 0. */
static unsigned long tick_every;

static void churn(unsigned long count)
{
  unsigned long goal = done + count;
  while (done < goal) {
    unsigned long before = done;
    while (opened - done < AT_A_TIME && opened < goal)
      open_one();
    carry();
    check(done > before, "nothing happens any more");
    if (tick_every && before / tick_every != done / tick_every)
      tcp_fasttmr(), tcp_slowtmr();
    /* Where none is to be in TIME-WAIT, it is left out. */
    while (bench_msl == 0 && tcp_tw_pcbs)
      tcp_abort(tcp_tw_pcbs);
  }
}

static void open_idle(unsigned long count)
{
  unsigned long before = established;
  for (unsigned long i = 0; i < count; i++)
    open_one();
  carry();
  check(established == before + count, "not every connection was opened");
}

static struct pbuf *packet(const void *bytes, unsigned length)
{
  struct pbuf *p = pbuf_alloc(PBUF_RAW, length, PBUF_RAM);
  check(p != NULL && pbuf_take(p, bytes, length) == ERR_OK, "pbuf_alloc");
  return p;
}

static unsigned sum(const unsigned char *bytes, unsigned length, unsigned sum)
{
  for (unsigned i = 0; i < length; i += 2)
    sum += bytes[i] << 8 | bytes[i + 1];
  while (sum > 0xffff)
    sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/* The SYN with this number, from a host and port of its own. */
static void make_syn(unsigned char *syn, unsigned number)
{
  static const unsigned char plain[SYN_FRAME] = {
    0x45, 0, 0, SYN_FRAME, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 80,
    0, 0, 0, 0, 0, 0, 0, 0, 0x60, TCP_SYN, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4};
  unsigned host = 2 + number / 60000, port = 1024 + number % 60000, check_sum;
  memcpy(syn, plain, SYN_FRAME);
  syn[13] = host >> 16, syn[14] = host >> 8, syn[15] = host;
  syn[20] = port >> 8, syn[21] = port;
  check_sum = ~sum(syn, 20, 0);
  syn[10] = check_sum >> 8, syn[11] = check_sum;
  check_sum = ~sum(syn + 12, SYN_FRAME - 12, 6 + SYN_FRAME - 20);
  syn[36] = check_sum >> 8, syn[37] = check_sum;
}

static void receive_syns(unsigned long count)
{
  static unsigned number;
  unsigned long before = lwip_stats.tcp.xmit;
  for (unsigned long i = 0; i < count; i++) {
    unsigned char syn[SYN_FRAME];
    make_syn(syn, number++);
    ip_input(packet(syn, SYN_FRAME), &server_if);
  }
  check(lwip_stats.tcp.xmit - before == count, "not every SYN was answered");
}

static unsigned long fill(unsigned long count, void (*more)(unsigned long))
{
  unsigned long filled = 0;
  double until = cpu_us() + fill_ms * 1e3;
  while (filled < count && cpu_us() < until && resident() < mebibytes * 1048576.0) {
    unsigned long next = LWIP_MIN(count - filled, 4 * AT_A_TIME);
    more(next);
    filled += next;
  }
  return filled;
}

static void answer(unsigned long scale, double value, unsigned long connections)
{
  printf("scale %lu\nvalue %g\nconnections %lu\nup %lu\ndown %lu\n", scale, value, connections,
         connections ? up : 0, connections ? down : 0);
}

/* --- cases */

static void measure_churn(unsigned long scale)
{
  bench_msl = scale ? 8 * 500 / 2 : 0;
  tick_every = scale ? scale / 8 : WARM_UP;
  churn(WARM_UP);
  fill(scale > WARM_UP ? scale - WARM_UP : 0, churn);
  unsigned long reached = waiting(), before = done;
  double begun = cpu_us(), spent;
  up = down = 0;
  do {
    churn(4 * AT_A_TIME);
    spent = cpu_us() - begun;
  } while (spent < measure_ms * 1e3 && done - before < MOST_MEASURED);
  answer(reached, spent / (done - before), done - before);
}

static struct tcp_pcb *connect_silent(void)
{
  ip4_addr_t silent = {lwip_htonl(0x0affff01)};
  struct tcp_pcb *pcb = tcp_new();
  check(pcb != NULL, "tcp_new");
  if (tcp_connect(pcb, &silent, 80, on_connected) == ERR_OK)
    return pcb;
  tcp_close(pcb);
  return NULL;
}

static void measure_ports(unsigned long percent)
{
  static struct tcp_pcb *held[65536], *got[AT_A_TIME];
  unsigned long all = 0, count, calls = 0;
  double spent = 0;
  discarding = 1;
  netif_set_default(&client_ifs[0]);
  double until = cpu_us() + 4 * fill_ms * 1e3;
  while (percent && (held[all] = connect_silent())) {
    all++;
    if (cpu_us() > until) {
      printf("skip %lu were taken in %g s of CPU time, and not all\n", all, 4 * fill_ms / 1e3);
      return;
    }
  }
  for (count = all; count * 100 > all * percent;) {
    unsigned picked = below(count);
    tcp_abort(held[picked]);
    held[picked] = held[--count];
  }
  unsigned long batch = percent ? LWIP_MAX(LWIP_MIN((all - count) / 4, AT_A_TIME), 1) : AT_A_TIME;
  while (spent < measure_ms * 1e3 && calls < MOST_MEASURED) {
    double begun = cpu_us();
    for (unsigned long i = 0; i < batch; i++)
      got[i] = connect_silent();
    spent += cpu_us() - begun;
    calls += batch;
    for (unsigned long i = 0; i < batch; i++) {
      check((got[i] != NULL) == (percent < 100), "a port where none was left, or none where some were");
      if (got[i])
        tcp_abort(got[i]);
    }
  }
  answer(percent, spent / calls, 0);
}

static void measure_memory(unsigned long scale, const char *kind)
{
  idle = kind[0] == 'i';
  discarding = kind[0] == 's';
  void (*more)(unsigned long) = idle ? open_idle : discarding ? receive_syns : churn;
  more(WARM_UP);
  unsigned long first = idle || discarding ? WARM_UP : waiting();
  double before = resident();
  unsigned long reached = first + fill(scale > WARM_UP ? scale - WARM_UP : 0, more);
  if (!idle && !discarding)
    reached = waiting();
  answer(reached, (resident() - before) / ((idle ? 2 : 1) * (reached - first)), 0);
}

static void measure_packet(unsigned long scale)
{
  idle = keeping = 1;
  kept = malloc(scale * FRAME);
  check(kept != NULL, "malloc");
  unsigned long reached = fill(scale, open_idle), packets = 0;
  check(kept_count == reached, "not every handshake's last packet was kept");
  unsigned long dropped = lwip_stats.tcp.drop, sent = lwip_stats.tcp.xmit;
  double spent = 0;
  while (spent < measure_ms * 1e3 && packets < MOST_MEASURED) {
    struct pbuf *staged[STAGED];
    for (int i = 0; i < STAGED; i++)
      staged[i] = packet(kept[below(reached)], FRAME);
    double begun = cpu_us();
    for (int i = 0; i < STAGED; i++)
      ip_input(staged[i], &server_if);
    spent += cpu_us() - begun;
    packets += STAGED;
  }
  check(lwip_stats.tcp.drop == dropped && lwip_stats.tcp.xmit == sent, "packets were not accepted");
  answer(reached, spent / packets, 0);
}

/* Datagrams there and back; see src/datagrams.rs. */

enum { DATAGRAM = 64, MOST_SOCKETS = 1024, ECHO_PORT = 7 };
static struct udp_pcb *echo, *askers[MOST_SOCKETS];
static unsigned long long asked[MOST_SOCKETS], next_number, echo_goal;

static void put_content(unsigned char *bytes, unsigned long long number)
{
  for (int word = 0; word < DATAGRAM / 8; word++) {
    unsigned long long big = __builtin_bswap64(number + word);
    memcpy(bytes + word * 8, &big, 8);
  }
}

static unsigned long long number_of(struct pbuf *p)
{
  unsigned char wanted[DATAGRAM];
  unsigned long long number;
  check(p->len == DATAGRAM && p->next == NULL, "a datagram in pieces, or of another length");
  memcpy(&number, p->payload, 8);
  number = __builtin_bswap64(number);
  put_content(wanted, number);
  check(memcmp(wanted, p->payload, DATAGRAM) == 0, "bytes that were not sent");
  return number;
}

static void on_echo(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from, u16_t port)
{
  LWIP_UNUSED_ARG(arg);
  number_of(p);
  up += p->tot_len;
  /* What is received is sent: nothing is copied. */
  check(udp_sendto_if_src(pcb, p, from, port, &client_ifs[0], &server_if.ip_addr) == ERR_OK, "udp_sendto");
  pbuf_free(p);
}

static void ask(unsigned long place)
{
  struct pbuf *p = pbuf_alloc(PBUF_TRANSPORT, DATAGRAM, PBUF_RAM);
  check(p != NULL, "pbuf_alloc");
  put_content(p->payload, next_number);
  asked[place] = next_number++;
  check(udp_sendto_if_src(askers[place], p, &server_if.ip_addr, ECHO_PORT, &server_if,
                          &client_ifs[0].ip_addr) == ERR_OK, "udp_sendto");
  pbuf_free(p);
}

static void on_answer(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from, u16_t port)
{
  unsigned long place = (unsigned long)arg;
  LWIP_UNUSED_ARG(pcb), LWIP_UNUSED_ARG(from), LWIP_UNUSED_ARG(port);
  check(number_of(p) == asked[place], "a datagram that another socket sent");
  down += p->tot_len;
  done++;
  pbuf_free(p);
  if (done < echo_goal)
    ask(place);
}

/* So many, of which `at_a_time` are under way; all have come back at the end. */
static void round_trips(unsigned long count, unsigned long at_a_time)
{
  echo_goal = done + count;
  unsigned long first = done;
  for (unsigned long place = 0; place < at_a_time; place++)
    ask(place);
  /* Those that are under way when the goal is reached come back, too. */
  carry();
  check(done - first == count + at_a_time - 1, "nothing comes back any more");
}

static void measure_datagrams(unsigned long at_a_time)
{
  check(at_a_time > 0 && at_a_time <= MOST_SOCKETS, "so many sockets there are not");
  check((echo = udp_new()) && udp_bind(echo, &server_if.ip_addr, ECHO_PORT) == ERR_OK, "udp_bind");
  udp_recv(echo, on_echo, NULL);
  for (unsigned long place = 0; place < at_a_time; place++) {
    askers[place] = udp_new();
    check(askers[place] && udp_bind(askers[place], &client_ifs[0].ip_addr, 40000 + place) == ERR_OK, "udp_bind");
    udp_recv(askers[place], on_answer, (void *)place);
  }
  round_trips(10 * WARM_UP, at_a_time);
  unsigned long before = done;
  double begun = cpu_us(), spent;
  up = down = 0;
  do {
    round_trips(100 * AT_A_TIME, at_a_time);
    spent = cpu_us() - begun;
  } while (spent < measure_ms * 1e3);
  answer(at_a_time, spent / (done - before), done - before);
}

int main(int argc, char **argv)
{
  check(argc == 6, "usage: bench CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB");
  unsigned long scale = strtoul(argv[2], NULL, 10);
  fill_ms = strtoul(argv[3], NULL, 10);
  measure_ms = strtoul(argv[4], NULL, 10);
  mebibytes = strtoul(argv[5], NULL, 10);
  lwip_init();
  addresses = LWIP_MIN(1 + scale / PORTS_OF_ONE, MOST_ADDRESSES);
  for (unsigned i = 0; i < addresses; i++)
    add_netif(&client_ifs[i], 2 + i);
  add_netif(&server_if, 1);
  wire_places = 4096;
  wire = malloc(wire_places * sizeof *wire);
  struct tcp_pcb *listener = tcp_new();
  check(tcp_bind(listener, &server_if.ip_addr, 80) == ERR_OK, "tcp_bind");
  tcp_accept(tcp_listen(listener), on_accept);

  if (!strcmp(argv[1], "churn"))
    measure_churn(scale);
  else if (!strcmp(argv[1], "datagrams"))
    measure_datagrams(scale);
  else if (!strcmp(argv[1], "ports"))
    measure_ports(scale);
  else if (!strcmp(argv[1], "packet") || !strcmp(argv[1], "burst")) /* It takes one at a time. */
    measure_packet(scale);
  else
    measure_memory(scale, argv[1]);
  return 0;
}
