//! What to try first of each command: the end of its help.

/// The examples at the end of the help of `whimbrel serve`.
pub(crate) const SERVE: &str = "\
Examples:
  sudo whimbrel serve
      HTTP at http://10.9.0.2/ and http://[fd09::2]/, over a TUN device of its own
  sudo whimbrel serve --file-root . --upload
      The files below this directory, and a place to put some
  sudo whimbrel serve -w packet:eth0,addr=192.168.1.77/24,gw=192.168.1.1
      A host of its own in the network behind eth0
  whimbrel serve -w kernel: -l 127.0.0.1:8080
      The same server on the kernel's sockets, to compare";

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
      A new connection for each request; exit code 3 if it was too slow
  whimbrel load -z 60s -q 500 -w mem:rate=10M,delay=20ms,loss=1% --clock virtual
      A minute of a bad link in a moment, latency corrected for coordinated omission
  whimbrel load http://127.0.0.1:8080/ -w kernel: -c 200 -t 2 --json
      A server elsewhere by the kernel's sockets, on two threads, as one document
  sudo whimbrel load http://10.9.0.1:8080/ -w tun:whim1,addr=10.9.0.2/24
      A server on this machine by this stack

On a terminal there is a screen while it runs (--no-tui: none). Its keys:
  q, Esc, Ctrl-C   end it, and print what was measured
  p, space         pause it, or let it go on; paused time does not count
  +, -             more connections, or fewer: by one below 20, else by a tenth
  s                save the screen as an HTML file in this directory";

/// The examples at the end of the help of `whimbrel crr`.
pub(crate) const CRR: &str = "\
Examples:
  whimbrel crr -l 3s -i 3,10 -I 99,5
      Short connections in memory, until the mean of the runs is sure
  whimbrel crr --mode rr -r 64,16k -c 8
      Requests of 64 bytes and responses of 16 KiB on eight connections that stay
  sudo whimbrel crr --server
      The other side of the next line
  whimbrel crr 10.9.0.2:12865 -w kernel: -c 16
      The kernel's sockets against it";

/// The examples at the end of the help of `whimbrel bulk`.
pub(crate) const BULK: &str = "\
Examples:
  whimbrel bulk send -t 10 -w mem:rate=45M,delay=35ms --clock virtual
      A long path in a moment, and what limits it
  sudo whimbrel bulk send 10.9.0.1 -w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1
      To this machine's `iperf3 -s`, from a stack of its own
  sudo whimbrel bulk --server
      A server for `iperf3 -c 10.9.0.2`, and for the next line
  whimbrel bulk recv 10.9.0.2 -w kernel: -P 4 --json=iperf3
      Four streams from it, for readers of iperf3's documents";

/// The examples at the end of the help of `whimbrel pcap`.
pub(crate) const PCAP: &str = "\
Examples:
  sudo whimbrel pcap -w tun:whim0,addr=10.9.0.2/24 -o new.pcapng -a duration:10
      Ten seconds of what reaches a host at 10.9.0.2 that listens nowhere
  whimbrel pcap -w pcap:old.pcapng,addr=10.9.0.2/24 -o new.pcapng tcp port 80
      What the stack makes of an old capture, with the reasons";

/// The examples at the end of the help of `whimbrel script run`.
pub(crate) const SCRIPT_RUN: &str = "\
Examples:
  whimbrel script run tests/scripts
      Every script below a folder, in virtual time
  whimbrel script run --semantic --foreign --profile linux ~/packetdrill
      Scripts of others, by what they mean
  sudo whimbrel script run --against kernel tests/scripts/rfc9293/established
      The same of this machine's kernel";

/// The examples at the end of the help of `whimbrel sim run`.
pub(crate) const SIM_RUN: &str = "\
Examples:
  whimbrel sim run --seeds 0..1000
      A thousand random networks, every byte checked
  whimbrel sim run --seed 42
      One of them again, as it was";

/// The examples at the end of the help of `whimbrel sim grid`.
pub(crate) const SIM_GRID: &str = "\
Examples:
  whimbrel sim grid
      All cells: a minute or two
  whimbrel sim grid 10M 100M/70ms/cubic
      Those of 10 Mb/s, and one more
  whimbrel sim grid --json > before.json
      To be compared with, after a change: whimbrel sim grid --baseline before.json";

/// The examples at the end of the help of `whimbrel sim paths`.
pub(crate) const SIM_PATHS: &str = "\
Examples:
  whimbrel sim paths
      All of them: some minutes
  whimbrel sim paths fair loss-1%/reno
      Two flows side by side, and one with losses";

/// The examples at the end of the help of `whimbrel sysctl`.
pub(crate) const SYSCTL: &str = "\
Examples:
  whimbrel sysctl
      Every tunable, its value and its default
  whimbrel sysctl --profiles
      The other stacks whose rules there are
  whimbrel sysctl --profile illumos-2011 --diff whimbrel
      What differs in one of them, with the sources
  whimbrel sysctl --explain tw.syn
      All that is known of a tunable";

/// The examples at the end of the help of `whimbrel lab`.
pub(crate) const LAB: &str = "\
Examples:
  whimbrel lab
      All cases, with their own rules: a minute or two
  whimbrel lab show macos-16k
      What people saw, what they did, and what was really wrong
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
      Why requests took 1.125 s longer, and what of it can be varied";

/// The examples at the end of the help of `whimbrel lab run`.
pub(crate) const LAB_RUN: &str = "\
Examples:
  whimbrel lab run macos-16k
      One case, with its own rules and verdict
  whimbrel lab run illumos-1125ms --profile illumos-2011 --vary rate=400
      At a rate that the report does not have
  whimbrel lab run fddi-70ms --profile linux-6.18 -v
      By the rules of another stack
  whimbrel lab run macos-16k --ablate
      Which of its values make it: each back at the default, one at a time
  sudo whimbrel lab run macos-16k --real --quick
      In real time, against a server on the kernel
  whimbrel lab run freebsd-qps --vary threads=1,2,4
      On real threads, as many as these
  whimbrel lab run macos-16k --html macos.html --pcap-dir captures
      As a page with drawings, and with the packets of a connection of each row";

/// The examples at the end of the help of `whimbrel compare`.
pub(crate) const COMPARE: &str = "\
Examples:
  whimbrel compare before.json after.json
      What `load --json` wrote yesterday and today
  whimbrel compare before.json after.json --fail-if 'p99.more>10%'
      Exit with 3 if the slowest hundredth became slower by a tenth";

/// The examples at the end of the help of `whimbrel doctor`.
pub(crate) const DOCTOR: &str = "\
Examples:
  whimbrel doctor
      A line for each need, with its fix; exit code 4 if something is missing";

/// The examples at the end of the help of `whimbrel completions`.
pub(crate) const COMPLETIONS: &str = "\
Examples:
  whimbrel completions bash > whimbrel.bash
      To be put into /etc/bash_completion.d";

/// The examples at the end of the help of `whimbrel man`.
pub(crate) const MAN: &str = "\
Examples:
  whimbrel man | man -l -
      The page of the whole program
  whimbrel man script run | man -l -
      That of a command
  whimbrel man --dir man1
      A page for each command, into this folder";
