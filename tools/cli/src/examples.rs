//! First examples of each command, for the end of its help.

/// The examples at the end of the help of `whimbrel serve`.
pub(crate) const SERVE: &str = "\
Examples:
  sudo whimbrel serve
      HTTP at http://10.9.0.2/ and http://[fd09::2]/, over its own TUN device
  sudo whimbrel serve --file-root . --upload
      The files below this directory, with uploads
  sudo whimbrel serve -w packet:eth0,addr=192.168.1.77/24,gw=192.168.1.1
      A separate host in the network behind eth0
  whimbrel serve -w kernel: -l 127.0.0.1:8080
      The same server on the kernel's sockets, for comparison";

/// The examples at the end of the help of `whimbrel forward`.
pub(crate) const FORWARD: &str = "\
Examples:
  sudo whimbrel forward -l 80 --to 127.0.0.1:8080
      A server on this machine behind this stack's TCP, at http://10.9.0.2/
  sudo whimbrel forward -l 80 --to unix:/run/nginx.sock --proxy-protocol v2
      By a Unix socket; the server gets the client's address
  sudo whimbrel forward -w packet:eth0,addr=10.8.0.2/24 -l 22 --to localhost:22
      SSH of this machine as a separate host in the network behind eth0";

/// The examples at the end of the help of `whimbrel run`.
pub(crate) const RUN: &str = "\
Examples:
  whimbrel run -- curl -O http://192.0.2.1/file
      By this stack's TCP, which ends the program's connections and carries them on by this machine's
  whimbrel run --pcap run.pcapng -- git clone https://git.example/repository
      With a capture of what passes between the program and the stack
  whimbrel run --host-loopback -- curl http://10.0.2.2:8080/
      A server on this machine, which is not reached otherwise";

/// The examples at the end of the help of `whimbrel ss`.
pub(crate) const SS: &str = "\
Examples:
  whimbrel ss -tan
      Every TCP socket of the only stack that runs
  whimbrel ss 4711 -tin state established '( sport = :80 and not dst 10.0.0.0/8 )'
      Variables of some connections of process 4711
  whimbrel ss serve --why dst 10.9.0.1
      The reason why each connection to a host waits
  whimbrel ss serve -tO --why
      A line for each connection, for grep and sort: the stuck ones wait for long
  whimbrel ss serve -s
      How many sockets there are, and how many in TIME-WAIT
  whimbrel ss -K dst 10.9.0.1 dport = 40000
      Reset a connection";

/// The examples at the end of the help of `whimbrel nstat`.
pub(crate) const NSTAT: &str = "\
Examples:
  whimbrel nstat
      Counters that are not 0, of the only stack that runs
  whimbrel nstat 4711 -z 'TcpExtListen*' 'TcpExtTCPReqQ*' 'TcpExtSyncookies*'
      SYNs that process 4711 refused, or answered with cookies; zeros included
  whimbrel nstat serve --watch 1s
      Growth in each second";

/// The examples at the end of the help of `whimbrel netstat`.
pub(crate) const NETSTAT: &str = "\
Examples:
  whimbrel netstat -s
      The counters of the only stack that runs, as net-tools words them
  whimbrel netstat -s 4711 --style solaris
      Under the names of Solaris, as far as it has the same counters";

/// The examples at the end of the help of `whimbrel link`.
pub(crate) const LINK: &str = "\
Examples:
  whimbrel link tun:a,addr=10.1.0.1/24 tun:b,netns=b,addr=10.1.0.2/24 delay=20ms
      40 ms there and back to the namespace b; needs root, and `ip netns add b`
  whimbrel link tun:a,netns=a tun:b,netns=b rate=45M queue=1bdp -i 1s
      Between two namespaces with addresses of their own; a line each second
  whimbrel link tun:a,netns=a tun:b,netns=b drop=10+10/2 -z 30s --json
      One that loses the tenth segment of each connection, and its first repair";

/// The examples at the end of the help of `whimbrel load`.
pub(crate) const LOAD: &str = "\
Examples:
  whimbrel load
      Two hosts in memory, fifty connections, ten seconds: no privilege, no network
  whimbrel load -z 30s -K --close client --fail-if 'p99>5ms || errors>0.1%'
      Open a new connection for each request; exit code 3 if too slow
  whimbrel load -z 60s -q 500 -w mem:rate=10M,delay=20ms,loss=1% --clock virtual
      A simulated minute of a bad link, latency corrected for coordinated omission
  whimbrel load http://127.0.0.1:8080/ -w kernel: -c 200 -t 2 --json
      Another server, with the kernel's sockets on two threads, as one document
  sudo whimbrel load http://10.9.0.1:8080/ -w tun:whim1,addr=10.9.0.2/24
      A server on this machine, with this stack

On a terminal the command shows a screen (--no-tui: none). Its keys:
  q, Esc, Ctrl-C   end it, and print what was measured
  p, space         pause or resume; paused time does not count
  +, -             more connections, or fewer: by one below 20, else by a tenth
  s                save the screen as an HTML file in this directory";

/// The examples at the end of the help of `whimbrel crr`.
pub(crate) const CRR: &str = "\
Examples:
  whimbrel crr -l 3s -i 3,10 -I 99,5
      Short connections in memory, until the mean of the runs is certain
  whimbrel crr --mode rr -r 64,16k -c 8
      Requests of 64 bytes and responses of 16 KiB on eight persistent connections
  sudo whimbrel crr --server
      The server for the next line
  whimbrel crr 10.9.0.2:12865 -w kernel: -c 16
      Measure it with the kernel's sockets";

/// The examples at the end of the help of `whimbrel bulk`.
pub(crate) const BULK: &str = "\
Examples:
  whimbrel bulk send -t 10 -w mem:rate=45M,delay=35ms --clock virtual
      A simulated long path, and what limits it
  sudo whimbrel bulk send 10.9.0.1 -w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1
      To this machine's `iperf3 -s`, from a separate stack
  sudo whimbrel bulk --server
      A server for `iperf3 -c 10.9.0.2`, and for the next line
  whimbrel bulk recv 10.9.0.2 -w kernel: -P 4 --json=iperf3
      Four streams from it, as an iperf3 document";

/// The examples at the end of the help of `whimbrel pcap`.
pub(crate) const PCAP: &str = "\
Examples:
  sudo whimbrel pcap -w tun:whim0,addr=10.9.0.2/24 -o new.pcapng -a duration:10
      Capture for ten seconds the packets to a host at 10.9.0.2 without listeners
  whimbrel pcap -w pcap:old.pcapng,addr=10.9.0.2/24 -o new.pcapng tcp port 80
      Replay an old capture to the stack; the new one has the reasons for drops
  whimbrel pcap --pid serve -o one.pcapng -a duration:10 host 10.9.0.1
      Ten seconds of one client of a running `serve`";

/// The examples at the end of the help of `whimbrel script run`.
pub(crate) const SCRIPT_RUN: &str = "\
Examples:
  whimbrel script run tests/scripts
      Every script below a folder, in virtual time
  whimbrel script run --semantic --foreign --profile linux ~/packetdrill
      Scripts of other projects, with tolerance for differences of policy
  sudo whimbrel script run --against kernel tests/scripts/rfc9293/established
      The same scripts against this machine's kernel";

/// The examples at the end of the help of `whimbrel sim run`.
pub(crate) const SIM_RUN: &str = "\
Examples:
  whimbrel sim run --seeds 0..1000
      A thousand random networks, with every byte checked
  whimbrel sim run --seed 42
      Repeat one of them exactly";

/// The examples at the end of the help of `whimbrel sim grid`.
pub(crate) const SIM_GRID: &str = "\
Examples:
  whimbrel sim grid
      All cells, in one or two minutes
  whimbrel sim grid 10M 100M/70ms/cubic
      All cells of 10 Mb/s, and one more
  whimbrel sim grid --json > before.json
      Compare after a change with: whimbrel sim grid --baseline before.json
  whimbrel sim grid --full 10M/10ms/0% --html full.html
      Losses, queues and bbr, too: without CELL, all 720 cells in hours";

/// The examples at the end of the help of `whimbrel sim paths`.
pub(crate) const SIM_PATHS: &str = "\
Examples:
  whimbrel sim paths
      All cells, in a few minutes
  whimbrel sim paths fair loss-1%/reno
      Two parallel flows, and one flow with losses";

/// The examples at the end of the help of `whimbrel sysctl`.
pub(crate) const SYSCTL: &str = "\
Examples:
  whimbrel sysctl
      Every tunable, its value and its default
  whimbrel sysctl --profiles
      The profiles of other stacks
  whimbrel sysctl --profile illumos-2011 --diff whimbrel
      The differences of a profile, with sources
  whimbrel sysctl --explain tw.syn
      All information on a tunable
  whimbrel sysctl serve
      Every tunable of a running `serve`, and its origin
  whimbrel sysctl serve net.ipv4.tcp_fin_timeout=30
      Change it while it runs, in every shard";

/// The examples at the end of the help of `whimbrel lab`.
pub(crate) const LAB: &str = "\
Examples:
  whimbrel lab
      All cases with their own settings, in one or two minutes
  whimbrel lab show macos-16k
      Symptoms, workaround and cause of a case
  whimbrel lab run macos-16k
      One case";

/// The examples at the end of the help of `whimbrel lab list`.
pub(crate) const LAB_LIST: &str = "\
Examples:
  whimbrel lab list
      The cases, a line or two each";

/// The examples at the end of the help of `whimbrel lab show`.
pub(crate) const LAB_SHOW: &str = "\
Examples:
  whimbrel lab show illumos-1125ms
      Why requests took 1.125 s longer, and the parameters that can be varied";

/// The examples at the end of the help of `whimbrel lab run`.
pub(crate) const LAB_RUN: &str = "\
Examples:
  whimbrel lab run macos-16k
      One case, with its own settings and verdict
  whimbrel lab run illumos-1125ms --profile illumos-2011 --vary rate=400
      At a rate that the report does not have
  whimbrel lab run fddi-70ms --profile linux-6.18 -v
      With another stack's settings
  whimbrel lab run macos-16k --ablate
      Which of its settings cause it: each set to the default, one at a time
  sudo whimbrel lab run macos-16k --real --quick
      In real time, against a server on the kernel
  whimbrel lab run freebsd-qps --vary threads=1,2,4
      With these numbers of real threads
  whimbrel lab run macos-16k --html macos.html --pcap-dir captures
      As a page with charts, and with the packets of a connection for each row";

/// The examples at the end of the help of `whimbrel explain`.
pub(crate) const EXPLAIN: &str = "\
Examples:
  whimbrel explain trouble.pcapng
      Causes of lost time, worst first, with settings of Linux and FreeBSD
  whimbrel explain trouble.pcap.gz --flow 10.0.0.1:40000-10.0.0.2:80
      One connection, and where its time went
  whimbrel explain trouble.pcapng --filter 'port 443' --worst 20
      One service, with the twenty connections that lost most time";

/// The examples at the end of the help of `whimbrel compare`.
pub(crate) const COMPARE: &str = "\
Examples:
  whimbrel compare before.json after.json
      Compare two results of `load --json`
  whimbrel compare before.json after.json --fail-if 'p99.more>10%'
      Exit code 3 if p99 rose by more than 10 %";

/// The examples at the end of the help of `whimbrel doctor`.
pub(crate) const DOCTOR: &str = "\
Examples:
  whimbrel doctor
      One line per requirement, with its fix; exit code 4 if something is missing";

/// The examples at the end of the help of `whimbrel completions`.
pub(crate) const COMPLETIONS: &str = "\
Examples:
  whimbrel completions bash > whimbrel.bash
      For /etc/bash_completion.d";

/// The examples at the end of the help of `whimbrel man`.
pub(crate) const MAN: &str = "\
Examples:
  whimbrel man | man -l -
      The page of the whole program
  whimbrel man script run | man -l -
      The page of a command
  whimbrel man --dir man1
      A page for each command, in this folder";
