//! Marks of a path (ECN) between this stack and Linux: counters of both kernels and of the path agree.

use serde_json::Value;

use crate::link::{end, link};
use crate::netns::{Net, Serve, WHIMBREL};

/// This stack in `near` at 10.2.0.2, Linux in `far` at 10.1.0.2, and a path between them that marks.
struct World {
    near: Net,
    far: Net,
}

/// Counters that a transfer has changed.
struct Changes {
    before: [Value; 2],
    after: [Value; 2],
}

impl World {
    fn new() -> Option<Self> {
        let (near, far) = (Net::new()?, Net::with(&["nstat"])?);
        near.set("net.ipv4.ip_forward", "1");
        far.set("net.ipv4.tcp_ecn", "1");
        // It ends slow start only at a loss or a mark.
        far.set("net.ipv4.tcp_congestion_control", "reno");
        // No stall of a busy machine is to count as a loss.
        far.set("net.ipv4.tcp_early_retrans", "0");
        Some(Self { near, far })
    }

    /// Counters of this stack and of Linux.
    fn counters(&self, serve: &Serve) -> [Value; 2] {
        let whimbrel = self.near.run(&format!("{WHIMBREL} nstat -jz {}", serve.id()));
        let linux = self.far.run("nstat -azj");
        [whimbrel, linux].map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Linux transfers by `bulk` to or from a service of this stack. Returns what changed; nothing may be sent again.
    fn transfer(&self, asks: &str, service: &str, words: &str) -> Changes {
        let (wire, ecn) =
            ("tun:stack,addr=10.2.0.2/24,host=10.2.0.1", format!("net.ipv4.tcp_ecn={asks}"));
        let serve =
            self.near.serve(&["-w", wire, service, "-C", "reno", "-S", &ecn, "-S", PATIENT]);
        let before = self.counters(&serve);
        let bulk = format!("{WHIMBREL} bulk {words} --peer plain -n {BYTES} -w kernel: --json");
        let told: Value = serde_json::from_str(&self.far.run(&bulk)).unwrap();
        let summary = &told["summary"];
        let arrived = summary["sent"].as_u64().max(summary["received"].as_u64());
        assert!(summary["error"].is_null() && arrived >= Some(BYTES), "{summary}");
        let changes = Changes { before, after: self.counters(&serve) };
        serve.end();
        for side in [Side::Whimbrel, Side::Linux] {
            for counter in ["TcpRetransSegs", "TcpExtTCPTimeouts"] {
                assert_eq!(changes.of(side, counter), 0, "{words}: {counter} of {side:?}");
            }
        }
        changes
    }
}

/// A host whose counters are read.
#[derive(Clone, Copy, Debug)]
enum Side {
    Whimbrel,
    Linux,
}

impl Changes {
    fn of(&self, side: Side, counter: &str) -> u64 {
        let [before, after] = [&self.before, &self.after].map(|counters| {
            let value = counters[side as usize]["kernel"][counter].as_u64();
            value.unwrap_or_else(|| panic!("{side:?} has no {counter}"))
        });
        after - before
    }
}

#[test]
fn marks_of_a_path_reduce_windows_of_this_stack_and_linux() {
    // Linux answers the request for accurate feedback with that of RFC 3168, which is all that it has by 1.
    for asks in ["ask", "ask-accurate"] {
        let Some(world) = World::new() else { return };
        let path = link(&world.near, &world.far, "rate=20M delay=5ms ecn=8k queue=100000p");
        world.far.run("ip route add 10.2.0.0/24 via 10.1.0.1 rto_min 5s");
        let from_linux = world.transfer(asks, "--discard", "send 10.2.0.2:9");
        let from_whimbrel = world.transfer(asks, "--chargen", "recv 10.2.0.2:19");
        let (document, _) = end(path);
        let [near, far] = [0, 1].map(|at| document["directions"][at]["marked"].as_u64().unwrap());
        assert!(near > 0 && far > 0, "{asks}: {document}");
        for direction in [0, 1].map(|at| &document["directions"][at]) {
            assert_eq!(direction["lost"], 0, "{asks}: {document}");
        }
        // Each mark arrives, and each receiver echoes it until the sender says that its window is reduced: without
        // CWR all that follows the first mark would be acknowledged with ECE.
        let sent = |changes: &Changes, side| changes.of(side, "TcpOutSegs");
        assert_eq!(from_linux.of(Side::Whimbrel, "IpExtInCEPkts"), far, "{asks}");
        let told = from_linux.of(Side::Linux, "TcpExtTCPDeliveredCE");
        assert!((1..sent(&from_linux, Side::Linux) / 2).contains(&told), "{asks}: {told}");
        assert_eq!(from_whimbrel.of(Side::Linux, "IpExtInCEPkts"), near, "{asks}");
        let told = from_whimbrel.of(Side::Whimbrel, "TcpExtTCPDeliveredCE");
        assert!((1..sent(&from_whimbrel, Side::Whimbrel) / 2).contains(&told), "{asks}: {told}");
        let reduced = from_whimbrel.of(Side::Whimbrel, "WhimbrelEcnReductions");
        assert!((1..=near).contains(&reduced), "{asks}: {reduced} reductions by {near} marks");
    }
}

/// The least retransmission timeout of this stack, as Linux' here.
const PATIENT: &str = "net.ipv4.tcp_rto_min_us=5s";

/// Bytes of a transfer: a hundred round trips of 10 ms and more.
const BYTES: u64 = 2 << 20;
