//! Tests of `sockets`.

use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;
use whimbrel_wire::{Family, TrafficClass};

use super::*;
use crate::datagram::Fragmenting;
use crate::error::QueueError;

const HERE: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const ALSO_HERE: Address = Address::from_v4_bytes([10, 0, 0, 9]);
const ANYWHERE: Local = Local::Every(Family::V4);

fn sockets() -> Sockets {
    let range = PortRange::new(40_000, 40_009).unwrap();
    Sockets::new(&Secrets::from_seed(7), range, ReservedPorts::NONE)
}

fn peer(port: u16) -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), port)
}

fn at(local: Local, port: u16) -> Bind {
    Bind::new(local, port)
}

fn shared(local: Local, port: u16) -> Bind {
    Bind { sharing: Sharing::Shared, ..Bind::new(local, port) }
}

fn arrived(from: Endpoint, to: Endpoint, data: &[u8]) -> Arrived<'_> {
    let class = TrafficClass::default();
    Arrived { from, to, data, class, hop_limit: 64, dont_fragment: true }
}

fn outgoing(data: Bytes) -> OutgoingDatagram {
    let (from, options) = (Endpoint::new(HERE, 53), SendOptions::default());
    OutgoingDatagram { from, to: peer(9), data, segment: 0, options }
}

/// An error about a datagram to `to`, as a router reports it.
fn of(to: Endpoint, error: SocketError) -> DatagramError {
    DatagramError::new(to, Address::from_v4_bytes([10, 0, 0, 254]), error)
}

/// Delivers a datagram; returns its receiver.
fn taker(sockets: &mut Sockets, from: Endpoint, to: Endpoint, of: &[UdpHandle]) -> Option<usize> {
    let delivered = sockets.deliver(&arrived(from, to, b"x"), Room::Enough);
    let found = of.iter().position(|handle| sockets.recv(*handle).is_some());
    assert_eq!(delivered.is_ok(), found.is_some());
    assert!(of.iter().all(|handle| sockets.recv(*handle).is_none()), "delivered once");
    found
}

#[test]
fn single_any_socket_receives_what_no_other_does() {
    let mut sockets = sockets();
    let any = sockets.bind_any().unwrap();
    assert_eq!(sockets.bind_any(), Err(BindError::AnyInUse));
    let own = sockets.bind(&at(ANYWHERE, 53)).unwrap();
    let of = [any, own];
    let here = Endpoint::new(HERE, 53);
    assert_eq!(taker(&mut sockets, peer(9), here, &of), Some(1));
    assert_eq!(taker(&mut sockets, peer(9), Endpoint::new(HERE, 54), &of), Some(0));
    // Of one for another host no other socket is asked.
    sockets.deliver_other(&arrived(peer(9), here, b"x"), Room::Enough).unwrap();
    assert_eq!(sockets.recv(any).unwrap().to, here);
    // A socket connected to another peer leaves it the rest.
    sockets.connect(own, HERE, peer(7)).unwrap();
    assert_eq!(taker(&mut sockets, peer(7), here, &of), Some(1));
    assert_eq!(taker(&mut sockets, peer(9), here, &of), Some(0));
    assert_eq!(sockets.connect(any, HERE, peer(7)), Err(BindError::AnyPeers));
    assert_eq!(sockets.disconnect(any), Ok(()));
    sockets.check_invariants().unwrap();
    assert!(sockets.close(any) && !sockets.is_any(any));
    assert_eq!(taker(&mut sockets, peer(9), here, &[own]), None);
    let refused = sockets.deliver_other(&arrived(peer(9), here, b"x"), Room::Enough);
    assert_eq!(refused, Err(Undelivered::NoSocket));
    assert!(sockets.bind_any().is_ok());
}

#[test]
fn datagram_goes_to_the_most_exact_socket_of_its_port() {
    let mut sockets = sockets();
    let both = sockets.bind(&shared(Local::Both, 53)).unwrap();
    let every = sockets.bind(&shared(ANYWHERE, 53)).unwrap();
    let bound = sockets.bind(&shared(Local::Address(HERE), 53)).unwrap();
    let connected = sockets.bind(&shared(Local::Address(HERE), 53)).unwrap();
    sockets.connect(connected, HERE, peer(7)).unwrap();
    let of = [both, every, bound, connected];
    let here = Endpoint::new(HERE, 53);
    let v6 = Endpoint::new(Address::from_bytes([1; 16]), 53);
    assert_eq!(taker(&mut sockets, peer(7), here, &of), Some(3));
    assert_eq!(taker(&mut sockets, peer(8), here, &of), Some(2));
    assert_eq!(taker(&mut sockets, peer(7), Endpoint::new(ALSO_HERE, 53), &of), Some(1));
    assert_eq!(taker(&mut sockets, v6, v6, &of), Some(0));
    for handle in [connected, bound, every] {
        assert!(sockets.close(handle));
    }
    assert_eq!(taker(&mut sockets, peer(7), here, &of), Some(0));
    assert_eq!(sockets.check_invariants(), Ok(()));
    assert!(sockets.close(both));
    assert_eq!(sockets.memory(), 0, "nothing is left");
}

#[test]
fn a_stray_allocates_nothing_and_is_counted() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    sockets.connect(socket, HERE, peer(7)).unwrap();
    let before = sockets.memory();
    let strays = [
        (peer(8), Endpoint::new(HERE, 53)),
        (peer(7), Endpoint::new(HERE, 54)),
        (peer(7), Endpoint::new(ALSO_HERE, 53)),
        (peer(7), Endpoint::new(HERE, 0)),
        (peer(7), Endpoint::new(HERE, 65_535)),
    ];
    for (from, to) in strays {
        let verdict = sockets.deliver(&arrived(from, to, b"stray"), Room::Enough);
        assert_eq!(verdict, Err(Undelivered::NoSocket));
    }
    assert_eq!((sockets.counters.no_ports, sockets.memory()), (5, before));
    assert_eq!(sockets.next_news(), None);
}

#[test]
fn receive_buffer_bounds_the_queue_and_drops_are_counted() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    sockets.set_recv_size(socket, 4_096);
    let (data, to) = ([7; 100], Endpoint::new(HERE, 53));
    let query = arrived(peer(1), to, &data);
    let taken = (0..100).filter(|_| sockets.deliver(&query, Room::Enough).is_ok()).count();
    // While less than the limit is in use, one more is accepted.
    assert_eq!(taken, 4_096_usize.div_ceil(100 + Received::OVERHEAD));
    let counters = &sockets.counters;
    assert_eq!(counters.in_datagrams, taken as u64);
    assert_eq!(
        (counters.rcvbuf_errors, counters.in_errors),
        (100 - taken as u64, 100 - taken as u64)
    );
    while sockets.recv(socket).is_some() {}
    // One that exceeds the whole buffer has room in an empty one, as on Linux.
    let large = Bytes::from(alloc::vec![7; 65_000]);
    assert_eq!(sockets.deliver(&arrived(peer(1), to, &large), Room::Enough), Ok(()));
    assert_eq!(sockets.recv(socket).unwrap().data, large);
    assert_eq!(sockets.check_invariants(), Ok(()));
}

#[test]
fn a_datagram_pins_what_it_is_or_a_chunk_of_short_ones() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    let before = sockets.memory();
    let burst = [1; 65_000];
    let to = Endpoint::new(HERE, 53);
    for (len, most) in [(1, 512), (ShortDatagrams::MOST, 512), (129, 129), (1_472, 1_472)] {
        let datagram = arrived(peer(1), to, &burst[..len]);
        sockets.deliver(&datagram, Room::Enough).unwrap();
        assert_eq!(sockets.memory() - before, len + Received::OVERHEAD);
        // It is a copy: the borrowed bytes are not referred to.
        let received = sockets.recv(socket).unwrap();
        assert_eq!(received, Received::of(&datagram));
        assert!(!core::ptr::eq(received.data.as_ptr(), burst.as_ptr()));
        let pinned = received.data.try_into_mut().map_or(most, |data| data.capacity());
        assert!(pinned <= most, "{len} bytes pin {pinned}");
        assert_eq!(sockets.memory(), before);
    }
}

#[test]
fn short_datagrams_stay_as_they_came() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    let to = Endpoint::new(HERE, 53);
    let text = |number: usize| vec![number as u8; number % 200];
    let mut held = Vec::new();
    for number in 0..1_000 {
        sockets.deliver(&arrived(peer(1), to, &text(number)), Room::Enough).unwrap();
        let received = sockets.recv(socket).unwrap();
        // Each chunk has some that are held and some that are gone.
        if number % 3 == 0 {
            held.push((number, received));
        }
    }
    assert!(held.iter().all(|(number, received)| received.data == text(*number)));
}

#[test]
fn nothing_is_taken_while_all_memory_is_held() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    let query = arrived(peer(1), Endpoint::new(HERE, 53), b"query");
    assert_eq!(sockets.deliver(&query, Room::None), Err(Undelivered::Memory));
    let sent = queue(&mut sockets, socket, outgoing(Bytes::from_static(b"a")), Room::None);
    assert_eq!(sent, Err(QueueError::Memory));
    assert_eq!((sockets.counters.mem_errors, sockets.counters.in_errors), (2, 1));
    assert!(!sockets.has_out());
}

#[test]
fn refused_socket_gets_event_once_half_its_buffer_is_free() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    sockets.set_send_size(socket, 4_096);
    let datagram = || outgoing(Bytes::from_static(&[1; 1_000]));
    let mut queued = 0;
    while queue(&mut sockets, socket, datagram(), Room::Enough).is_ok() {
        queued += 1;
    }
    assert_eq!(queued, 4_096_usize.div_ceil(1_000 + Leaving::OVERHEAD));
    assert_eq!(sockets.counters.sndbuf_errors, 1);
    assert!(!sockets.is_writable(socket));
    let mut left = 0;
    while sockets.next_news().is_none() {
        assert!(sockets.next_out().is_some(), "news before all has left");
        left += 1;
    }
    assert!((queued - left) * (1_000 + Leaving::OVERHEAD) <= 2_048 && sockets.is_writable(socket));
    assert_eq!(sockets.check_invariants(), Ok(()));
}

#[test]
fn what_was_handed_over_leaves_though_its_socket_be_closed() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    queue(&mut sockets, socket, outgoing(Bytes::from_static(b"last")), Room::Enough).unwrap();
    assert!(sockets.close(socket));
    assert!(!sockets.close(socket), "the handle names nothing any more");
    // Its place is another socket's by now, whose bytes it does not count.
    let next = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    assert_eq!((next.index(), next == socket), (socket.index(), false));
    assert_eq!(sockets.next_out().unwrap().data, Bytes::from_static(b"last"));
    assert_eq!((sockets.next_out(), sockets.check_invariants()), (None, Ok(())));
}

#[test]
fn an_error_is_told_once_and_to_who_is_connected_there() {
    let mut sockets = sockets();
    let (open, here) = (sockets.bind(&at(ANYWHERE, 53)).unwrap(), Endpoint::new(HERE, 53));
    assert!(sockets.on_error(&here, &of(peer(7), SocketError::PortUnreachable)));
    assert_eq!((sockets.take_error(open), sockets.next_news()), (None, None));
    sockets.connect(open, HERE, peer(7)).unwrap();
    assert!(!sockets.on_error(&here, &of(peer(8), SocketError::PortUnreachable)));
    assert!(
        !sockets.on_error(&Endpoint::new(HERE, 54), &of(peer(7), SocketError::PortUnreachable))
    );
    assert!(sockets.on_error(&here, &of(peer(7), SocketError::PortUnreachable)));
    assert_eq!((sockets.next_news(), sockets.has_error(open)), (Some(open), true));
    assert_eq!(sockets.take_error(open), Some(SocketError::PortUnreachable));
    assert_eq!((sockets.take_error(open), sockets.counters.icmp_errors), (None, 1));
    // The next peer is not concerned.
    sockets.on_error(&here, &of(peer(7), SocketError::HostUnreachable));
    sockets.connect(open, HERE, peer(8)).unwrap();
    assert_eq!(sockets.take_error(open), None);
}

#[test]
fn transient_error_fails_no_call_and_hides_no_hard_one() {
    let mut sockets = sockets();
    let (open, here) = (sockets.bind(&at(ANYWHERE, 53)).unwrap(), Endpoint::new(HERE, 53));
    sockets.connect(open, HERE, peer(7)).unwrap();
    for (error, is_hard) in [
        (SocketError::HostUnreachable, false),
        (SocketError::PortUnreachable, true),
        (SocketError::TimeExceeded, true),
    ] {
        sockets.on_error(&here, &of(peer(7), error));
        assert_eq!(sockets.has_error(open), is_hard, "{error}");
    }
    assert_eq!(sockets.take_error(open), Some(SocketError::PortUnreachable));
}

#[test]
fn disconnected_socket_receives_from_every_sender_again() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(ANYWHERE, 53)).unwrap();
    sockets.connect(socket, ALSO_HERE, peer(7)).unwrap();
    assert_eq!(sockets.local(socket), Some(Endpoint::new(ALSO_HERE, 53)));
    assert_eq!(sockets.remote(socket), Some(peer(7)));
    let here = Endpoint::new(HERE, 53);
    assert_eq!(taker(&mut sockets, peer(7), here, &[socket]), None);
    sockets.disconnect(socket).unwrap();
    assert_eq!(
        (sockets.remote(socket), sockets.sending(socket).map(|it| *it.sender().local)),
        (None, Some(ANYWHERE))
    );
    assert_eq!(taker(&mut sockets, peer(8), here, &[socket]), Some(0));
}

#[test]
fn a_port_is_had_by_one_unless_all_share_it() {
    let mut sockets = sockets();
    let own = sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    for local in [Local::Address(HERE), ANYWHERE, Local::Both] {
        let refused = BindError::InUse(Endpoint::new(local.address(), 53));
        assert_eq!(sockets.bind(&at(local, 53)), Err(refused));
        assert_eq!(sockets.bind(&shared(local, 53)), Err(refused), "the first does not share");
    }
    // Sockets that cannot match one datagram do not exclude each other.
    sockets.bind(&at(Local::Address(ALSO_HERE), 53)).unwrap();
    sockets.bind(&at(Local::Every(Family::V6), 53)).unwrap();
    assert!(sockets.close(own));
    sockets.bind(&at(Local::Address(HERE), 53)).unwrap();
    assert_eq!(sockets.iter().count(), 3);
}

#[test]
fn ports_are_drawn_in_no_order_until_there_is_none() {
    let mut sockets = sockets();
    let mut ports = Vec::new();
    for _ in 0..10 {
        let socket = sockets.bind(&at(ANYWHERE, 0)).unwrap();
        ports.push(sockets.local(socket).unwrap().port);
    }
    let mut sorted = ports.clone();
    sorted.sort_unstable();
    assert_ne!(ports, sorted);
    assert_eq!(sorted, (40_000..40_010).collect::<Vec<_>>());
    let exhausted = BindError::PortsExhausted { first: 40_000, last: 40_009 };
    assert_eq!(sockets.bind(&at(ANYWHERE, 0)), Err(exhausted));
    let handle = UdpHandle { generation: 0, index: 3 };
    let freed = sockets.local(handle).unwrap().port;
    assert!(sockets.close(handle));
    let next = sockets.bind(&at(ANYWHERE, 0)).unwrap();
    assert_eq!(sockets.local(next).unwrap().port, freed);
    // Reserved ones are not drawn, but may be asked for.
    let reserved = ReservedPorts::new(&[(50_000, 50_006)]).unwrap();
    sockets.set_rules(PortRange::new(50_000, 50_007).unwrap(), reserved);
    let only = sockets.bind(&at(ANYWHERE, 0)).unwrap();
    assert_eq!(sockets.local(only).unwrap().port, 50_007);
    assert!(sockets.bind(&at(ANYWHERE, 0)).is_err());
    assert!(sockets.bind(&at(ANYWHERE, 50_001)).is_ok());
}

#[test]
fn stale_events_stay_bounded_if_events_are_not_polled() {
    let mut sockets = sockets();
    let kept = sockets.bind(&at(ANYWHERE, 54)).unwrap();
    sockets.deliver(&arrived(peer(1), Endpoint::new(HERE, 54), b"x"), Room::Enough).unwrap();
    for _ in 0..10_000 {
        let socket = sockets.bind(&at(ANYWHERE, 53)).unwrap();
        sockets.deliver(&arrived(peer(1), Endpoint::new(HERE, 53), b"x"), Room::Enough).unwrap();
        sockets.close(socket);
    }
    assert!(sockets.news.len() <= SPARE + 3, "{} names", sockets.news.len());
    assert_eq!((sockets.next_news(), sockets.next_news()), (Some(kept), None));
}

#[test]
fn options_and_sizes_are_those_that_were_set() {
    let mut sockets = sockets();
    let socket = sockets.bind(&at(ANYWHERE, 53)).unwrap();
    assert_eq!(sockets.sizes(socket), Some(Sizes { recv: 212_992, send: 212_992 }));
    sockets.set_recv_size(socket, 1);
    sockets.set_send_size(socket, 100_000);
    assert_eq!(sockets.sizes(socket), Some(Sizes { recv: 2_048, send: 100_000 }));
    let class = TrafficClass(0xb8);
    let options = SendOptions { hop_limit: Some(3), class, fragmenting: Fragmenting::Refused };
    sockets.set_options(socket, options);
    assert_eq!(sockets.options(socket), Some(options));
}

/// A model without a table of the socket that receives a datagram: the latest of the most exact.
fn most_exact(
    model: &[(UdpHandle, Local, Option<Endpoint>, u16)],
    to: Endpoint,
    from: Endpoint,
) -> Option<UdpHandle> {
    let exactness = |local: &Local, remote: &Option<Endpoint>| match (local, remote) {
        (_, Some(_)) => 3,
        (Local::Address(_), None) => 2,
        (Local::Every(_), None) => 1,
        (Local::Both, None) => 0,
    };
    let takes = model.iter().filter(|(_, local, remote, port)| {
        *port == to.port && local.covers(&to.addr) && remote.is_none_or(|it| it == from)
    });
    takes.max_by_key(|(_, local, remote, _)| exactness(local, remote)).map(|it| it.0)
}

proptest! {
    #[test]
    fn whatever_comes_and_goes_a_datagram_goes_where_a_plain_search_would_take_it(
        steps in proptest::collection::vec((0..4_u8, 0..4_usize, 0..3_u16, 0..2_u16, 0..8_usize), 1..60),
    ) {
        let locals = [Local::Address(HERE), Local::Address(ALSO_HERE), ANYWHERE, Local::Both];
        let (mut sockets, mut model) = (sockets(), Vec::new());
        for (step, local, port, from, which) in steps {
            let (local, port, from) = (locals[local], 53 + port, peer(7 + from));
            let address = if which % 2 == 0 { HERE } else { ALSO_HERE };
            match step {
                0 => {
                    let handle = sockets.bind(&shared(local, port)).unwrap();
                    model.push((handle, local, None, port));
                }
                1 if !model.is_empty() => {
                    let entry = model.remove(which % model.len());
                    prop_assert!(sockets.close(entry.0));
                }
                2 if !model.is_empty() => {
                    // The socket bound last comes last.
                    let (handle, _, _, port) = model.remove(which % model.len());
                    sockets.connect(handle, address, from).unwrap();
                    let local = *sockets.sending(handle).unwrap().sender().local;
                    model.push((handle, local, Some(from), port));
                }
                _ => {
                    let to = Endpoint::new(address, port);
                    let expected = most_exact(&model, to, from);
                    let delivered = sockets.deliver(&arrived(from, to, b"x"), Room::Enough);
                    prop_assert_eq!(delivered.is_ok(), expected.is_some());
                    if let Some(handle) = expected {
                        prop_assert!(sockets.recv(handle).is_some());
                    }
                }
            }
            prop_assert_eq!(sockets.check_invariants(), Ok(()));
        }
        for entry in &model {
            prop_assert!(sockets.close(entry.0));
        }
        prop_assert_eq!(sockets.memory(), 0);
    }
}

#[test]
fn socket_that_keeps_errors_gets_those_of_all_peers() {
    let mut sockets = sockets();
    let [keeps, plain] = [53, 54].map(|port| sockets.bind(&at(ANYWHERE, port)).unwrap());
    sockets.keep_errors(keeps);
    let [of_keeping, of_plain] = [53, 54].map(|port| Endpoint::new(HERE, port));
    let error = |port| of(peer(port), SocketError::PortUnreachable);
    assert!(sockets.on_error(&of_plain, &error(7)));
    assert_eq!(sockets.next_news(), None, "it could not say whom the error is of");
    for port in 1..=40 {
        assert!(sockets.on_error(&of_keeping, &error(port)));
    }
    assert_eq!((sockets.next_news(), sockets.next_news()), (Some(keeps), None));
    // The oldest have given way.
    let kept: Vec<_> = std::iter::from_fn(|| sockets.take_report(keeps)).collect();
    assert_eq!(kept, (25..=40).map(error).collect::<Vec<_>>());
    assert_eq!((sockets.take_report(plain), sockets.take_error(keeps)), (None, None));
    assert!(sockets.close(keeps) && sockets.close(plain));
    sockets.check_invariants().unwrap();
}

fn queue(
    sockets: &mut Sockets,
    handle: UdpHandle,
    datagram: OutgoingDatagram,
    room: Room,
) -> Result<(), QueueError> {
    sockets.sending(handle).expect("there is such a socket").queue(datagram, room)
}
