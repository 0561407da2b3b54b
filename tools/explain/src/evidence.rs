//! Testimony of the hosts: counters of nstat and sockets of ss settle what packets cannot.

use std::collections::BTreeMap;

use whimbrel_wire::Endpoint;

use crate::findings::Confidence;
use crate::flow::{CLIENT, SERVER};
use crate::half::MS;
use crate::id::Id;
use crate::id::kinds::{SYNS_DROPPED, SYNS_FILTERED, SYNS_UNHEEDED};
use crate::report::{Finding, Place, Report};

/// Counters and sockets of one host.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct Evidence {
    /// Counters under Linux' names (`TcpExtListenOverflows`), since the host has started.
    pub counters: BTreeMap<String, u64>,
    /// Its sockets.
    pub sockets: Vec<Socket>,
}

/// A socket, as ss shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Socket {
    /// `ESTAB`, `LISTEN`, `TIME-WAIT`.
    pub state: String,
    /// Its own end. A port of 0 stands for any.
    pub local: Endpoint,
    /// The other end.
    pub peer: Endpoint,
    /// Bytes, or of a listener connections, that wait for the program; and the other way.
    pub queues: [u64; 2],
    /// Time with text to send or in flight, milliseconds.
    pub busy: u64,
    /// Time limited by the receiver's window, milliseconds.
    pub rwnd_limited: u64,
    /// Time limited by the send buffer, milliseconds.
    pub sndbuf_limited: u64,
}

impl Socket {
    /// A socket in `state` between these ends, of which nothing else is known.
    pub const fn new(state: String, local: Endpoint, peer: Endpoint) -> Self {
        let (busy, rwnd_limited, sndbuf_limited) = (0, 0, 0);
        Self { state, local, peer, queues: [0; 2], busy, rwnd_limited, sndbuf_limited }
    }
}

/// A counter that belongs to a finding.
struct Sign {
    id: Id,
    /// True if the host at which to look counts it; otherwise the other one.
    is_here: bool,
    names: &'static [&'static str],
    /// True if all of them must have risen at least once where the finding holds.
    decides: bool,
}

const fn sign(id: Id, is_here: bool, names: &'static [&'static str], decides: bool) -> Sign {
    Sign { id, is_here, names, decides }
}

/// Counters of findings.
const SIGNS: [Sign; 13] = [
    sign(Id::SynUnanswered, true, &["TcpExtListenDrops", "TcpExtTCPReqQFullDrop"], false),
    sign(Id::SynRefused, true, &["TcpOutRsts"], true),
    sign(Id::AcceptOverflow, true, &["TcpExtListenOverflows"], true),
    sign(Id::PortExhausted, true, &["TcpExtTW", "TcpExtTWRecycled"], false),
    sign(Id::ZeroWindow, true, &["TcpExtTCPToZeroWindowAdv"], true),
    sign(Id::NagleDelack, false, &["TcpExtDelayedACKs"], true),
    sign(Id::Loss, true, &["TcpRetransSegs"], true),
    sign(Id::TailLoss, true, &["TcpExtTCPTimeouts", "TcpExtTCPLossProbes"], true),
    sign(Id::SpuriousRetransmit, true, &["TcpExtTCPDSACKRecv", "TcpExtTCPSpuriousRTOs"], false),
    sign(Id::Reordering, false, &["TcpExtTCPOFOQueue"], true),
    sign(Id::Outage, true, &["TcpExtTCPTimeouts"], true),
    sign(Id::PeerSilent, false, &["TcpExtTCPTimeouts"], true),
    sign(Id::RstWithData, true, &["TcpExtTCPAbortOnClose", "TcpExtTCPAbortOnData"], false),
];

impl Report {
    /// Settles findings by what a host says: one that it confirms is sure, and one that it contradicts is
    /// `INFO` of low confidence, or takes another name. The host is the one that its counters of opened
    /// connections tell, if one of them is 0, and otherwise the one at which the capture was taken.
    pub fn settle(&mut self, evidence: &Evidence) {
        let host = self.host_of(evidence);
        for finding in &mut self.findings {
            finding.settle_by_counters(evidence, host);
            finding.settle_by_sockets(&evidence.sockets);
        }
        self.sort();
    }

    /// The side of the host, if it is known.
    fn host_of(&self, evidence: &Evidence) -> Option<usize> {
        let count = |place| self.flows.iter().filter(|flow| flow.place == place).count();
        let [at_client, at_server] = [Place::Client, Place::Server].map(count);
        let opens = |name: &str| evidence.counters.get(name).copied().unwrap_or(0);
        match [opens("TcpActiveOpens"), opens("TcpPassiveOpens")] {
            [0, count] if count > 0 => Some(SERVER),
            [count, 0] if count > 0 => Some(CLIENT),
            _ => match at_client.cmp(&at_server) {
                std::cmp::Ordering::Greater => Some(CLIENT),
                std::cmp::Ordering::Less => Some(SERVER),
                std::cmp::Ordering::Equal => None,
            },
        }
    }
}

impl Finding {
    fn settle_by_counters(&mut self, evidence: &Evidence, host: Option<usize>) {
        let counter = |name: &&'static str| Some((*name, *evidence.counters.get(*name)?));
        if self.id == Id::RstInjected && host.is_none_or(|host| host == self.side) {
            if evidence.counters.get("TcpOutRsts") == Some(&0) {
                self.confirm("TcpOutRsts is 0: that end has sent no reset".into());
            }
            return;
        }
        if [SYNS_DROPPED, SYNS_UNHEEDED].contains(&self.kind) {
            self.settle_syns(evidence, host == Some(SERVER));
            return;
        }
        let Some(sign) = SIGNS.iter().find(|sign| sign.id == self.id) else { return };
        let side = if sign.is_here { self.side } else { 1 - self.side.min(1) };
        if host.is_some_and(|host| host != side) {
            return;
        }
        let known: Vec<_> = sign.names.iter().filter_map(counter).collect();
        if let Some((name, count)) = known.iter().find(|(_, count)| *count > 0) {
            self.confirm(format!("{name} is {count}"));
        } else if sign.decides && host.is_some() && known.len() == sign.names.len() {
            self.contradict(format!("{} is 0", sign.names.join(" and ")));
        }
    }

    /// Tells a full queue that drops SYNs from a path or a filter that does.
    fn settle_syns(&mut self, evidence: &Evidence, is_server: bool) {
        const NAMES: [&str; 2] = ["TcpExtListenOverflows", "TcpExtListenDrops"];
        let counts = NAMES.map(|name| evidence.counters.get(name).copied());
        match (is_server, counts) {
            (true, [Some(0), Some(0)]) => {
                (self.id, self.kind, self.side) = (Id::Loss, SYNS_FILTERED, CLIENT);
                self.confirm(format!("{} are 0: no queue was full", NAMES.join(" and ")));
                self.confidence = Confidence::Medium;
            }
            (true, [Some(count), _]) if count > 0 => {
                (self.id, self.kind, self.side) = (Id::AcceptOverflow, SYNS_DROPPED, SERVER);
                self.confirm(format!("{} is {count}", NAMES[0]));
            }
            _ => {}
        }
    }

    fn settle_by_sockets(&mut self, sockets: &[Socket]) {
        let side = self.side.min(1);
        let of_side =
            |at: usize| sockets.iter().filter(|it| self.is_of(it, at)).collect::<Vec<_>>();
        let (own, other) = (of_side(side), of_side(1 - side));
        match self.id {
            Id::SenderLimited | Id::CwndLimited => {
                let worst = own.into_iter().max_by_key(|it| it.sndbuf_limited.max(it.busy));
                if let Some(socket) = worst {
                    self.settle_sender(socket);
                }
            }
            Id::RwndLimited => match other.iter().map(|it| it.rwnd_limited).max() {
                Some(0) => self.contradict("ss shows no rwnd_limited at the sender".into()),
                Some(millis) => self.confirm(format!("rwnd_limited {millis} ms")),
                None => {}
            },
            Id::ZeroWindow => {
                let waiting = own.iter().map(|it| it.queues[0]).max();
                if let Some(bytes) = waiting.filter(|bytes| *bytes > 0) {
                    self.confirm(format!("{bytes} bytes wait for the program (Recv-Q)"));
                }
            }
            Id::CloseWaitHeld if own.iter().any(|it| it.state == "CLOSE-WAIT") => {
                self.confirm("the socket is in CLOSE-WAIT".into());
            }
            Id::AcceptOverflow => {
                let listens = sockets.iter().filter(|it| it.state == "LISTEN");
                let port = self.ends[SERVER].port;
                let full = listens
                    .into_iter()
                    .find(|it| it.local.port == port && it.queues[0] > it.queues[1]);
                if let Some([queue, most]) = full.map(|it| it.queues) {
                    self.confirm(format!("{queue} connections wait in a queue of {most}"));
                }
            }
            Id::PortExhausted => {
                let held = own.iter().filter(|it| it.state == "TIME-WAIT").count();
                if held > 0 {
                    self.confirm(format!("ports in TIME-WAIT: {held}"));
                }
            }
            _ => {}
        }
    }

    /// Tells a send buffer from other limits of a sender.
    fn settle_sender(&mut self, socket: &Socket) {
        let is_window = socket.rwnd_limited.saturating_mul(10) >= socket.busy.saturating_mul(3);
        let is_buffer = socket.sndbuf_limited.saturating_mul(10) >= socket.busy.saturating_mul(3);
        match self.id {
            _ if socket.busy == 0 => {}
            Id::SenderLimited if socket.sndbuf_limited > 0 => {
                self.kind = "send buffer";
                self.confirm(format!("sndbuf_limited {} ms", socket.sndbuf_limited));
            }
            Id::SenderLimited => {
                self.kind = "a clamp, not the send buffer";
                self.confirm("ss shows no sndbuf_limited".into());
            }
            _ if is_buffer => {
                (self.id, self.kind) = (Id::SenderLimited, "send buffer");
                self.is_info &= self.time_lost < 200 * MS;
                self.confirm(format!("sndbuf_limited {} ms", socket.sndbuf_limited));
            }
            _ if is_window => {
                (self.id, self.kind, self.side) = (Id::RwndLimited, "", 1 - self.side.min(1));
                self.is_info &= self.time_lost < 200 * MS;
                self.confirm(format!("rwnd_limited {} ms", socket.rwnd_limited));
            }
            _ => {}
        }
    }

    /// True if a socket is that of a side of one of its flows.
    fn is_of(&self, socket: &Socket, side: usize) -> bool {
        let [client, server] = match side {
            CLIENT => [socket.local, socket.peer],
            _ => [socket.peer, socket.local],
        };
        let is_port = self.flows > 1 || self.ends[CLIENT].port == client.port;
        server == self.ends[SERVER] && client.addr == self.ends[CLIENT].addr && is_port
    }

    fn confirm(&mut self, evidence: String) {
        self.confidence = Confidence::High;
        self.evidence.push(evidence);
    }

    fn contradict(&mut self, evidence: String) {
        (self.confidence, self.is_info) = (Confidence::Low, true);
        self.evidence.push(format!("{evidence}, which refutes it"));
    }
}
