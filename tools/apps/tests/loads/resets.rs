//! Resets after both FINs: all data was acknowledged and read, so nothing failed.

use whimbrel_apps::http::{CloseBy, FixedBody, HttpServer, Limits};
use whimbrel_apps::load::{Ending, Load, LoadPlan, StopCondition};
use whimbrel_apps::peer::{CloseMode, Role};
use whimbrel_apps::{Model, PeerServer};
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::bytes::Bytes;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{Address, Endpoint, Flow, IpHeader, Ipv4Header, Protocol, RawWindow, SeqNum};

use crate::http::plan;

const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A model on a host, and its peer, whose segments the test writes.
struct Played<M> {
    shard: Shard,
    model: M,
    /// The host's end, and the peer's.
    flow: Flow,
    /// The peer's next sequence number, and the one after the host's last.
    next: SeqNum,
    sent: SeqNum,
    /// True if the host's FIN is included.
    ended: bool,
}

/// The side whose end was reported first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    /// The host's; the peer's crosses it.
    Host,
    /// The peer's; the host's follows.
    Peer,
}

impl<M: Model<Shard>> Played<M> {
    /// The peer opens a connection to the model.
    fn to_server(model: M) -> Self {
        let mut played = Self::new(model, Endpoint::new(address(2), 5_000));
        played.shard.listen(played.flow.local, 4).unwrap();
        played.say(TcpFlags::SYN, &[]);
        played.say(ACK, &[]);
        played
    }

    /// The model opens one to the peer.
    fn from_client(model: M) -> Self {
        let mut played = Self::new(model, Endpoint::new(address(2), 80));
        played.act();
        played.say(TcpFlags::SYN_ACK, &[]);
        played
    }

    fn new(model: M, remote: Endpoint) -> Self {
        let local = Endpoint::new(address(1), 80);
        let shard = Shard::new(ShardConfig {
            tunables: Tunables { timestamps: false, ..Tunables::default() },
            secrets: Secrets::from_seed(1),
            capabilities: Capabilities::plain(Medium::Ip, 1_500),
            addresses: vec![InterfaceAddress { addr: local.addr, prefix_len: 24 }],
            routes: Vec::new(),
        });
        Self {
            shard: shard.unwrap(),
            model,
            flow: Flow { local, remote },
            next: SeqNum::new(7_000),
            sent: SeqNum::new(0),
            ended: false,
        }
    }

    /// Runs the model, and passes its segments to the peer.
    fn act(&mut self) {
        while self.model.poll(&mut self.shard, Instant::ZERO, 64) {}
        let mut batch = TxBatch::new(64);
        while self.shard.tx(&mut batch) || !batch.is_empty() {
            for segment in batch.pending() {
                let packet = segment.to_vec();
                let (_, bytes) = IpHeader::parse(&packet).unwrap();
                let (header, len) = TcpHeader::parse(bytes).unwrap();
                self.flow.local.port = header.src_port;
                self.sent = header.seq + header.flags.sequence_len() + (bytes.len() - len) as u32;
                self.ended |= header.flags.contains(FIN);
            }
            batch.consume(batch.pending().len());
        }
    }

    /// The peer's segment arrives, and the model handles it.
    fn say(&mut self, flags: TcpFlags, text: &[u8]) {
        self.send(flags, self.sent, text);
        self.act();
    }

    /// The peer's segment arrives.
    fn send(&mut self, flags: TcpFlags, ack: SeqNum, text: &[u8]) {
        let header = TcpHeader {
            src_port: self.flow.remote.port,
            dst_port: self.flow.local.port,
            seq: self.next,
            ack: if flags.contains(ACK) { ack } else { SeqNum::new(0) },
            flags,
            window: RawWindow::new(60_000),
            ..TcpHeader::default()
        };
        self.next = self.next + flags.sequence_len() + text.len() as u32;
        let mut segment = vec![0; TcpHeader::MAX_LEN];
        let len = header.emit(OptionOrder::Linux, &mut segment);
        segment.truncate(len);
        segment.extend_from_slice(text);
        let [from, to] = [self.flow.remote, self.flow.local].map(|it| it.addr.v4_bytes().into());
        let mut packet = vec![0; Ipv4Header::LEN];
        Ipv4Header::new(from, to, Protocol::TCP, segment.len()).emit(&mut packet);
        packet.extend(segment);
        let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
        self.shard.rx(Instant::ZERO, &[RxFrame::new(&packet, meta)]);
    }

    /// Both sides sent FIN, the host's is not acknowledged, and a reset comes: before the model
    /// read the peer's end, or after.
    fn reset(&mut self, first: First, hears_end: bool) {
        assert_eq!(self.ended, first == First::Host);
        // The data is acknowledged, and the FIN is not.
        let text = self.sent - u32::from(self.ended);
        self.send(ACK | FIN, text, &[]);
        if hears_end || first == First::Peer {
            self.act();
            assert!(self.ended, "the host has not told its end");
        }
        let expected = match first {
            First::Host => SocketState::Closing,
            First::Peer => SocketState::LastAck,
        };
        let text = self.sent - 1;
        self.send(ACK, text, &[]);
        assert_eq!(self.shard.state_between(&self.flow), Some(expected));
        self.send(TcpFlags::RST, text, &[]);
        self.act();
        let left = self.shard.census();
        assert_eq!((left.connections, left.time_wait), (0, 0));
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 0, 0, host])
}

/// Servers that close before and after their peers.
const WAYS: [(First, bool); 3] = [(First::Host, false), (First::Host, true), (First::Peer, true)];

#[test]
fn web_server_counts_no_failure_for_reset_after_both_fins() {
    for (first, hears_end) in WAYS {
        for close_by in [CloseBy::Server, CloseBy::Client] {
            let limits = Limits { close_by, ..Limits::default() };
            let mut played = Played::to_server(HttpServer::new(FixedBody::new(10), limits));
            let ends_itself = first == First::Host;
            if ends_itself && close_by == CloseBy::Client {
                continue;
            }
            played.say(ACK, if ends_itself { LAST } else { ASK });
            played.reset(first, hears_end);
            let told = *played.model.statistics();
            let case = format!("{first:?} first, {close_by:?} closes, heard: {hears_end}");
            assert_eq!((told.requests, told.open, told.failed), (1, 0, 0), "{case}");
        }
    }
}

#[test]
fn byte_server_counts_no_failure_for_reset_after_both_fins() {
    let answer = Bytes::from_static(b"pong");
    let roles = [Role::Echo, Role::Respond { request: 4, answer }, Role::Sink, Role::Discard];
    for role in roles {
        for (first, hears_end) in WAYS {
            let close_mode =
                if first == First::Host { CloseMode::First } else { CloseMode::Second };
            let answers = matches!(role, Role::Echo | Role::Respond { .. });
            if first == First::Host && !answers {
                continue;
            }
            let mut played = Played::to_server(PeerServer::new(role.clone(), close_mode));
            played.say(ACK, b"ping");
            played.reset(first, hears_end);
            let told = *played.model.statistics();
            let case = format!("{role:?}, {first:?} first, heard: {hears_end}");
            assert_eq!((told.received, told.open, told.failed), (4, 0, 0), "{case}");
        }
    }
}

#[test]
fn load_counts_no_failure_where_a_reset_follows_both_ends() {
    for (first, hears_end) in WAYS {
        let ending = if first == First::Host { Ending::Client } else { Ending::Server };
        let once = LoadPlan { connections: 1, ..plan(ending, StopCondition::Exchanges(1)) };
        let mut played = Played::from_client(Load::new(LoadPlan {
            target: Endpoint::new(address(2), 80),
            ..once
        }));
        played.say(ACK, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\npong");
        played.reset(first, hears_end);
        let record = played.model.record();
        let case = format!("{first:?} first, heard: {hears_end}");
        assert_eq!((record.answered(), record.failed(), record.unclean), (1, 0, 0), "{case}");
    }
}
