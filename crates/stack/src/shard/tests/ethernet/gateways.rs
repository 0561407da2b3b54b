//! A network beyond two gateways: the second one is for when the first does not answer.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::packet::{SegMeta, SoftError};
use whimbrel_wire::ethernet::EthernetHeader;
use whimbrel_wire::{Address, Endpoint, IpHeader, MacAddress, Protocol};

use super::super::hosts::{BOTH, Over};
use super::station::{Host, Sent, address, answers, asks, ping, read, station};
use crate::{Route, RouteMetrics, RxFrame};

const FIRST: u16 = 9;
const SECOND: u16 = 8;

fn host(over: Over) -> Host {
    let route = |gateway, metric| Route {
        network: address(over, gateway),
        prefix_len: 0,
        gateway: Some(address(over, gateway)),
        metric,
        metrics: RouteMetrics::default(),
    };
    Host::with_routes(std::vec![route(SECOND, 20), route(FIRST, 10)])
}

/// A host beyond the gateways.
fn far(over: Over) -> Address {
    match over {
        Over::V4 => Address::from_v4_bytes([192, 0, 2, 7]),
        Over::V6 => core::net::Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 7).into(),
    }
}

fn pinged(host: &mut Host, over: Over, sequence: u16) -> Vec<Sent> {
    host.take(&ping(far(over), sequence))
}

/// The first gateway was sought in vain, and the second one answered.
fn passed_over(over: Over) -> Host {
    let mut host = host(over);
    let ask = |gateway| Sent::Ask(address(over, gateway), None);
    assert_eq!(pinged(&mut host, over, 1), [ask(FIRST)]);
    let sent = host.run(Duration::from_millis(3_050));
    assert_eq!(sent, [ask(FIRST), ask(FIRST), ask(SECOND)]);
    let sent = host.take(&answers(over, SECOND, station(SECOND)));
    assert_eq!(sent, [Sent::Echo(1, station(SECOND))], "what waited for the first");
    host
}

#[test]
fn silent_gateway_is_replaced_and_its_packets_redirected() {
    for over in BOTH {
        let mut host = passed_over(over);
        assert_eq!(pinged(&mut host, over, 2), [Sent::Echo(2, station(SECOND))]);
        let counters = host.counters();
        assert_eq!((counters.gateways_failed, counters.out_neighbour_failed), (1, 0));
    }
}

#[test]
fn traffic_returns_to_the_better_gateway_when_it_answers() {
    for over in BOTH {
        let mut host = passed_over(over);
        host.run_seconds(29);
        assert_eq!(pinged(&mut host, over, 2), [Sent::Echo(2, station(SECOND))]);
        host.run_seconds(2);
        // Half a minute is over: the next packet has it asked, and waits for no answer.
        let sent = pinged(&mut host, over, 3);
        assert!(sent.contains(&Sent::Echo(3, station(SECOND))), "{sent:?}");
        assert!(sent.contains(&Sent::Ask(address(over, FIRST), None)), "{sent:?}");
        assert_eq!(host.take(&answers(over, FIRST, station(FIRST))), []);
        assert_eq!(pinged(&mut host, over, 4), [Sent::Echo(4, station(FIRST))]);
    }
}

#[test]
fn a_gateway_that_asks_for_us_is_alive() {
    for over in BOTH {
        let mut host = passed_over(over);
        assert_eq!(host.take(&asks(over, FIRST, station(FIRST))), [Sent::Answer(station(FIRST))]);
        assert_eq!(pinged(&mut host, over, 2), [Sent::Echo(2, station(FIRST))]);
    }
}

#[test]
fn gateway_that_falls_silent_in_use_is_detected() {
    for over in BOTH {
        let mut host = host(over);
        pinged(&mut host, over, 0);
        assert_eq!(
            host.take(&answers(over, FIRST, station(FIRST))),
            [Sent::Echo(0, station(FIRST))]
        );
        let taken_over = (1..=60).find(|number| {
            host.run_seconds(1);
            let sent = pinged(&mut host, over, *number);
            if sent.contains(&Sent::Ask(address(over, SECOND), None)) {
                host.take(&answers(over, SECOND, station(SECOND)));
            }
            sent.contains(&Sent::Echo(*number, station(SECOND)))
        });
        // 15 to 45 s REACHABLE, 5 s DELAY, 3 s of questions.
        let seconds = taken_over.expect("within a minute");
        assert!((20..=56).contains(&seconds), "{seconds}");
    }
}

#[test]
fn where_no_gateway_answers_each_is_tried_in_turn() {
    for over in BOTH {
        let mut host = host(over);
        let ask = |gateway| Sent::Ask(address(over, gateway), None);
        pinged(&mut host, over, 1);
        let sent = host.run_seconds(10);
        assert_eq!(sent, [ask(FIRST), ask(FIRST), ask(SECOND), ask(SECOND), ask(SECOND)]);
        assert_eq!(host.counters().out_neighbour_failed, 1);
        assert_eq!(pinged(&mut host, over, 2), [ask(FIRST)], "it died first");
        assert_eq!(host.run_seconds(10), [ask(FIRST), ask(FIRST)]);
        assert_eq!(pinged(&mut host, over, 3), [ask(SECOND)]);
    }
}

/// To whom the host's segments go in so many seconds. The second gateway answers.
fn segments(host: &mut Host, over: Over, seconds: u64) -> Vec<MacAddress> {
    let end = host.now + Duration::from_secs(seconds);
    let mut stations = Vec::new();
    loop {
        let frames = host.frames();
        for frame in &frames {
            let (header, packet) = EthernetHeader::parse(frame).expect("a frame");
            let ip = IpHeader::parse(packet).map(|(ip, _)| ip.protocol);
            if ip == Ok(Protocol::TCP) {
                stations.push(header.dst);
            } else if matches!(read(frame), Sent::Ask(of, _) if of == address(over, SECOND)) {
                let answer = answers(over, SECOND, station(SECOND));
                host.shard.rx(host.now, &[RxFrame::new(&answer, SegMeta::SINGLE)]);
            }
        }
        match host.shard.next_deadline().filter(|next| *next <= end) {
            _ if !frames.is_empty() => {}
            Some(next) => {
                host.now = host.now.max(next);
                while host.shard.advance(host.now, 16) {}
            }
            None => break,
        }
    }
    host.now = end;
    stations
}

#[test]
fn an_attempt_to_connect_gets_through_although_its_gateway_dies() {
    for over in BOTH {
        let mut host = host(over);
        host.take(&asks(over, FIRST, station(FIRST)));
        let attempt = host.shard.connect(Endpoint::new(far(over), 80), None).expect("a free port");
        let stations = segments(&mut host, over, 32);
        let (first, second) = (station(FIRST), station(SECOND));
        // 0, 1, 3 and 7 s: DELAY and three questions took 8 s. 15 and 31 s: there is another way.
        assert_eq!(stations, [first, first, first, first, second, second]);
        assert_eq!(host.shard.soft_error(attempt), None::<SoftError>, "it need not be known");
    }
}
