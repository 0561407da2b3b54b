//! Fast Open between this stack and the machine's kernel over TUN, with either as the client.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_posix::{Errno, MsgFlags, OptionValue, SocketFlags, SocketOption};
use whimbrel_script::call::{Call, Unconnected, WriteCall, Writing};
use whimbrel_script::host::{Network, ScriptHost};
use whimbrel_stack::shard::ConfigError;
use whimbrel_stack::{
    Capabilities, Handle, InterfaceAddress, Medium, Recv, Route, RxFrame, Shard, ShardConfig,
    TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{SocketOptions, State};
use whimbrel_wire::Endpoint;

use peer::{Peer, bytes, kernel, read, write};

#[path = "common/peer.rs"]
mod peer;

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.0 204 No Content\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

/// The kernel in its own namespace, and a shard at the other end of its device.
struct Hosts {
    peer: Peer,
    shard: Shard,
    batch: TxBatch,
}

fn hosts(network: &Network) -> Option<Hosts> {
    let mut peer = kernel(network)?;
    peer.host.set("net.ipv4.tcp_fastopen", "3").unwrap();
    Some(Hosts { peer, shard: shard(network).unwrap(), batch: TxBatch::new(64) })
}

fn shard(network: &Network) -> Result<Shard, ConfigError> {
    let everywhere = Route::new(network.local.to_ip(), 0);
    Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, network.mtu),
        addresses: vec![InterfaceAddress { addr: network.remote, prefix_len: network.prefix_len }],
        routes: vec![everywhere],
    })
}

impl Hosts {
    fn now(&self) -> Instant {
        Instant::ZERO + self.peer.host.now()
    }

    /// Carries packets both ways until `done` returns a value.
    fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = self.peer.host.now() + PATIENCE;
        loop {
            self.carry();
            if let Some(value) = done(self) {
                return value;
            }
            let now = self.peer.host.now();
            assert!(now < end, "waited too long until {what}");
            self.peer.host.run_until(now + Duration::from_millis(1));
        }
    }

    fn carry(&mut self) {
        let now = self.now();
        while let Some((_, packet)) = self.peer.host.poll_packet() {
            self.shard.rx(now, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        }
        while self.shard.advance(now, 64) {}
        while self.shard.tx(&mut self.batch) || !self.batch.is_empty() {
            let pending = self.batch.pending();
            pending.iter().for_each(|segment| self.peer.host.inject(&segment.to_vec()));
            let count = pending.len();
            self.batch.consume(count);
        }
    }

    /// Has the kernel connect by Fast Open with [`REQUEST`], without waiting.
    fn kernel_opens(&mut self) -> (i32, Result<i64, Errno>) {
        let fd = self.peer.socket(SocketFlags::SOCK_NONBLOCK);
        let pieces = vec![REQUEST.to_vec()];
        let with = Writing {
            call: WriteCall::SendTo,
            pieces,
            to: Some(self.peer.remote()),
            unconnected: Unconnected::Fails,
        };
        let sent = self.peer.call(Call::Send { fd, with, flags: MsgFlags::MSG_FASTOPEN });
        (fd, sent.value)
    }

    fn we_open(&mut self, to: Endpoint) -> Handle {
        let mut data = Bytes::from_static(REQUEST);
        let now = self.now();
        self.shard.set_now(now);
        let options = SocketOptions::default();
        let handle = self.shard.connect_fast(to, None, &options, &mut data).unwrap();
        // Without a cookie nothing is taken; it waits for the handshake.
        self.shard.send(handle, &mut data).unwrap();
        handle
    }

    fn we_read(&mut self, handle: Handle) -> Vec<u8> {
        self.until("there is something to read", |it| match it.shard.recv(handle) {
            Recv::Data(data) => Some(data.to_vec()),
            Recv::Pending => None,
            other => panic!("{other:?}"),
        })
    }
}

#[test]
fn the_kernels_requests_come_with_its_syns() {
    for network in [Network::v4(), Network::v6()] {
        let Some(mut hosts) = hosts(&network) else { return };
        let listener = hosts.shard.listen(hosts.peer.remote(), 8).unwrap();
        hosts.shard.set_fast_open(listener, 8);
        // The first connection requests a cookie, the others carry it.
        for round in 0..3 {
            let (fd, sent) = hosts.kernel_opens();
            assert_eq!(sent.is_ok(), round > 0, "{sent:?}");
            let handle = hosts.until("it is accepted", |it| it.shard.accept(listener));
            if round == 0 {
                assert_eq!(hosts.peer.value(write(fd, 4)), 4);
            } else {
                // No packet of the shard has reached the kernel's socket yet.
                assert_eq!(hosts.we_read(handle), REQUEST);
                let mut answer = Bytes::from_static(ANSWER);
                hosts.shard.send(handle, &mut answer).unwrap();
                let came = hosts.until("the answer comes", |it| {
                    let came = it.peer.call(read(fd, 100));
                    came.value.is_ok().then(|| bytes(&came).to_vec())
                });
                assert_eq!(came, ANSWER);
            }
            hosts.until("it is established", |it| {
                (it.shard.state(handle) == Some(State::Established)).then_some(())
            });
            assert_eq!(hosts.shard.snapshot(handle).unwrap().syn_data, round > 0);
            hosts.peer.value(Call::Close { fd });
            hosts.shard.abort(handle);
        }
        let counters = hosts.shard.counters();
        let counts = [
            counters.fast_open_cookies_requested,
            counters.fast_open_passive,
            counters.fast_open_passive_fail,
        ];
        assert_eq!(counts, [1, 2, 0]);
    }
}

#[test]
fn our_requests_come_with_our_syns_to_the_kernel() {
    for network in [Network::v4(), Network::v6()] {
        let Some(mut hosts) = hosts(&network) else { return };
        let listener = hosts.peer.listener();
        let (option, value) = (SocketOption::FastOpen, OptionValue::Int(8));
        hosts.peer.value(Call::SetSockOpt { fd: listener, option, value });
        hosts.peer.value(Call::FcntlSetFl {
            fd: listener,
            flags: whimbrel_posix::FileFlags::O_RDWR | whimbrel_posix::FileFlags::O_NONBLOCK,
        });
        let to = Endpoint::new(network.local, 8080);
        for round in 0..3 {
            let handle = hosts.we_open(to);
            let fd = hosts.until("it is accepted", |it| {
                let accept = Call::Accept { fd: listener, flags: SocketFlags::NONE };
                it.peer.call(accept).value.ok()
            });
            let fd = i32::try_from(fd).unwrap();
            let came = hosts.until("the request comes", |it| {
                let flags = MsgFlags::MSG_DONTWAIT;
                let with = whimbrel_script::call::Reading {
                    call: whimbrel_script::call::ReadCall::Recv,
                    sizes: vec![100],
                };
                let came = it.peer.call(Call::Receive { fd, with, flags });
                came.value.is_ok().then(|| bytes(&came).to_vec())
            });
            assert_eq!(came, REQUEST);
            assert_eq!(hosts.peer.value(write(fd, 9)), 9);
            assert_eq!(hosts.we_read(handle).len(), 9);
            assert_eq!(hosts.shard.snapshot(handle).unwrap().syn_data, round > 0);
            hosts.peer.value(Call::Close { fd });
            hosts.shard.abort(handle);
            hosts
                .until("nothing is under way", |it| (it.shard.census().replies == 0).then_some(()));
        }
        let counters = hosts.shard.counters();
        assert_eq!((counters.fast_open_active, counters.fast_open_active_fail), (2, 0));
    }
}
