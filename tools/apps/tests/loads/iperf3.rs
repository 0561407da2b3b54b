//! iperf3's protocol in virtual time: both sides, and foreign clients.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::bulk::{Bulk, Direction, Iperf3Params, Peer, StopCondition, TransferPlan};
use whimbrel_apps::iperf3::{COOKIE, Cookie, Fault, Refusal};
use whimbrel_apps::iperf3_server::{Server, Settings};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::transport::ConnectOptions;
use whimbrel_apps::{Model, Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_stack::Shard;

use crate::bulk;
use crate::world::{NoServer, Ran, target};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

fn cookie(letter: u8) -> Cookie {
    let mut cookie = [letter; COOKIE];
    cookie[COOKIE - 1] = 0;
    cookie
}

fn plan(direction: Direction, until: StopCondition) -> TransferPlan {
    let terms = Iperf3Params {
        cookie: cookie(b'a'),
        window: None,
        server_output: true,
        congestion: "reno".into(),
    };
    TransferPlan { peer: Peer::Iperf3(terms), ..bulk::plan(direction, until) }
}

fn server() -> Server<Shard> {
    Server::new(Settings {
        timeout: 10 * SECOND,
        idle: 30 * SECOND,
        congestion: "reno".into(),
        effort: || None,
        documents: false,
    })
}

fn run(links: &str, plan: TransferPlan) -> Ran<Bulk<Shard>, Server<Shard>> {
    Ran::new(links, Bulk::new(plan), server())
}

/// Rate that both sides measured, bytes per second, over all streams in this direction. Bytes under
/// way at the end of the client's time arrive before its message: the server counts them, and their
/// time.
fn both_rates(client: &Bulk<Shard>, direction: Direction) -> (f64, f64) {
    let streams = client.streams().iter().filter(|stream| stream.direction() == direction);
    let theirs = streams.map(|stream| *stream.theirs().unwrap());
    let seconds = theirs.clone().map(|theirs| theirs.seconds).fold(0.0, f64::max);
    let (ours, _) = both_counts(client, direction);
    let theirs: u64 = theirs.map(|theirs| theirs.bytes).sum();
    (ours as f64 / client.elapsed().as_secs_f64(), theirs as f64 / seconds)
}

/// Bytes that both sides counted.
fn both_counts(client: &Bulk<Shard>, direction: Direction) -> (u64, u64) {
    let streams = client.streams().iter().filter(|stream| stream.direction() == direction);
    streams.fold((0, 0), |(ours, theirs), stream| {
        let counted = stream.counted();
        let own = if direction == Direction::Send { counted.sent } else { counted.received };
        (ours + own, theirs + stream.theirs().unwrap().bytes)
    })
}

#[test]
fn both_sides_count_the_same_in_each_direction() {
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        let ran = run("rate=20M,delay=5ms", plan(direction, StopCondition::Elapsed(20 * SECOND)));
        let client = ran.client();
        assert_eq!((client.fault(), client.conn_error()), (None, None), "{direction:?}");
        assert_eq!(client.elapsed(), 20 * SECOND);
        for way in [Direction::Send, Direction::Receive] {
            if direction != way && direction != Direction::Both {
                assert_eq!(both_counts(client, way), (0, 0), "{direction:?}");
                continue;
            }
            let (ours, theirs) = both_rates(client, way);
            // 20 Mbit/s less headers; acknowledgments take a part if both directions are used.
            assert!((1.9e6..2.5e6).contains(&ours), "{direction:?} {way:?} {ours}");
            assert!((ours - theirs).abs() < ours / 50.0, "{direction:?} {way:?} {ours} {theirs}");
        }
        let printed = client.theirs().unwrap().server_output.clone().unwrap();
        assert!(
            printed.verbatim().contains("Accepted connection from")
                && printed.verbatim().contains("[SUM]"),
            "{printed}"
        );
        assert_eq!(ran.server().statistics().failed, 0);
        ran.assert_nothing_leaked();
    }
}

#[test]
fn test_of_some_bytes_ends_when_they_are_acknowledged_or_read() {
    let ran = run("delay=2ms", plan(Direction::Send, StopCondition::Bytes(1 << 20)));
    assert_eq!(both_counts(ran.client(), Direction::Send), (2 << 20, 2 << 20));
    let ran = run("delay=2ms", plan(Direction::Receive, StopCondition::Bytes(1 << 20)));
    assert!(both_counts(ran.client(), Direction::Receive).0 >= 2 << 20);
    ran.assert_nothing_leaked();
}

#[test]
fn losses_on_the_way_hurt_no_message() {
    for seed in 0..8_u64 {
        let config = whimbrel_sim::pair::PairConfig { seed, ..Default::default() };
        let short =
            TransferPlan { streams: 4, ..plan(Direction::Both, StopCondition::Elapsed(SECOND)) };
        let ran: Ran<_, Server<Shard>> =
            Ran::configured("rate=20M,delay=5ms,loss=3%", config, Bulk::new(short), server());
        let client = ran.client();
        assert_eq!((client.fault(), client.conn_error()), (None, None), "seed {seed}");
        assert!(client.streams().iter().all(|stream| stream.theirs().is_some()), "seed {seed}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn omitted_time_is_in_neither_sides_results() {
    let warm =
        TransferPlan { omit: SECOND, ..plan(Direction::Send, StopCondition::Elapsed(2 * SECOND)) };
    let ran = run("rate=10M,delay=5ms", warm);
    let (ours, theirs) = both_rates(ran.client(), Direction::Send);
    assert!((1.1e6..1.25e6).contains(&ours), "{ours}");
    assert!((ours - theirs).abs() < ours / 50.0, "{ours} {theirs}");
    let seconds = ran.client().streams()[0].theirs().unwrap().seconds;
    // Bytes under way took their time.
    assert!((1.95..2.6).contains(&seconds), "{seconds}");
}

#[test]
fn sending_server_keeps_the_rate() {
    let slow = TransferPlan {
        rate: Some(2_000_000),
        ..plan(Direction::Receive, StopCondition::Elapsed(4 * SECOND))
    };
    let ran = run("delay=1ms", slow);
    let (ours, _) = both_counts(ran.client(), Direction::Receive);
    assert!((1_900_000..2_100_000).contains(&ours), "{ours}");
}

#[test]
fn servers_of_something_else_are_named_as_that() {
    let fault = |role: Role| {
        let client = Bulk::new(plan(Direction::Send, StopCondition::Elapsed(SECOND)));
        let ran = Ran::new("delay=5ms", client, PeerServer::new(role, CloseMode::Second));
        let fault = ran.client().fault().map(|fault| fault.to_string());
        ran.assert_nothing_leaked();
        fault.unwrap()
    };
    for role in [Role::Sink, Role::Discard] {
        let told = fault(role);
        assert!(
            told.contains("no iperf3 server, and says so") && told.contains("--peer"),
            "{told}"
        );
    }
    assert!(fault(Role::Chargen).contains("control message 32"), "{}", fault(Role::Chargen));
    assert!(fault(Role::Echo).contains("control message 97"), "{}", fault(Role::Echo));
    // No application accepts the connections that the host's kernel completes.
    let client = Bulk::new(plan(Direction::Send, StopCondition::Elapsed(SECOND)));
    let ran = Ran::new("delay=5ms", client, NoServer);
    let told = ran.client().fault().unwrap().to_string();
    assert!(told.contains("timeout: waited for an answer to the cookie"), "{told}");
}

/// A foreign client on some connections: its messages and their times, and the replies.
#[derive(Default)]
struct Stranger {
    lines: Vec<Line>,
    until: Instant,
    is_done: bool,
}

#[derive(Default)]
struct Line {
    at: Duration,
    says: Vec<(Duration, Vec<u8>)>,
    /// Time when it resets the connection.
    hangs_up: Option<Duration>,
    id: Option<<Shard as Transport>::Id>,
    open: bool,
    pending: Bytes,
    heard: Vec<u8>,
    ended: bool,
}

impl Line {
    fn saying(at: Duration, says: &[&[u8]]) -> Self {
        let says = says.iter().enumerate();
        // Each message comes a while after the one before.
        let says = says.map(|(turn, it)| (at + 50 * MILLISECOND * (turn as u32 + 1), it.to_vec()));
        Self { at, says: says.collect(), ..Self::default() }
    }
}

impl Stranger {
    fn new(seconds: u64, lines: Vec<Line>) -> Self {
        Self { lines, until: Instant::ZERO + Duration::from_secs(seconds), is_done: false }
    }
}

impl Model<Shard> for Stranger {
    fn poll(&mut self, net: &mut Shard, now: Instant, _: usize) -> bool {
        while let Some(event) = Transport::poll_event(net) {
            if let TransportEvent::Connected(id) = event {
                let line = self.lines.iter_mut().find(|line| line.id == Some(id));
                line.into_iter().for_each(|line| line.open = true);
            }
        }
        for line in &mut self.lines {
            if line.id.is_none() && !line.ended && now >= Instant::ZERO + line.at {
                let how = ConnectOptions::default();
                line.id = Transport::connect(net, target(), &how, &mut Bytes::new()).ok();
            }
            let Some(id) = line.id.filter(|_| line.open) else { continue };
            if line.hangs_up.is_some_and(|at| now >= Instant::ZERO + at) {
                Transport::abort(net, id);
                (line.id, line.ended) = (None, true);
                continue;
            }
            while line.says.first().is_some_and(|(at, _)| now >= Instant::ZERO + *at) {
                let (_, text) = line.says.remove(0);
                line.pending = [&line.pending[..], &text].concat().into();
            }
            let _said = Transport::send(net, id, &mut line.pending);
            loop {
                match Transport::recv(net, id) {
                    Reading::Data(bytes) => line.heard.extend_from_slice(&bytes),
                    Reading::Pending => break,
                    Reading::End | Reading::Failed(_) => {
                        Transport::close(net, id);
                        (line.id, line.ended) = (None, true);
                        break;
                    }
                }
            }
        }
        if now >= self.until && !self.is_done {
            self.is_done = true;
            let ids: Vec<_> = self.lines.iter_mut().filter_map(|line| line.id.take()).collect();
            ids.into_iter().for_each(|id| Transport::abort(net, id));
        }
        false
    }

    fn next_deadline(&self) -> Option<Instant> {
        let texts = self.lines.iter().flat_map(|line| line.says.first().map(|(at, _)| *at));
        let opens = self.lines.iter().filter(|line| line.id.is_none() && !line.ended);
        let hangs = self.lines.iter().filter(|line| !line.ended).filter_map(|line| line.hangs_up);
        let all = texts.chain(opens.map(|line| line.at)).chain(hangs);
        let due = all.map(|at| Instant::ZERO + at).chain([self.until]);
        due.min().filter(|_| !self.is_done)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

fn meet(stranger: Stranger) -> Ran<Stranger, Server<Shard>> {
    Ran::new("delay=1ms", stranger, server())
}

fn document(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const ACCESS_DENIED: u8 = 0xff;

#[test]
fn second_client_is_refused_as_busy_and_first_continues() {
    let parameters = document(r#"{"tcp":true,"omit":0,"time":1,"parallel":1,"len":1000}"#);
    let first = Line::saying(Duration::ZERO, &[&cookie(b'a'), &parameters]);
    let second = Line::saying(200 * MILLISECOND, &[&cookie(b'b')]);
    let ran = meet(Stranger::new(1, vec![first, second]));
    let lines = &ran.client().lines;
    assert_eq!(lines[0].heard, [PARAM_EXCHANGE, CREATE_STREAMS]);
    assert_eq!(lines[1].heard, [ACCESS_DENIED]);
    assert!(lines[1].ended && !lines[0].ended);
    assert_eq!(ran.server().statistics().refused, 1);
    ran.assert_nothing_leaked();
}

#[test]
fn unsupported_test_is_refused_with_iperf3s_number() {
    let answer = |parameters: &str| {
        let line = Line::saying(Duration::ZERO, &[&cookie(b'a'), &document(parameters)]);
        let ran = meet(Stranger::new(1, vec![line]));
        let heard = ran.client().lines[0].heard.clone();
        assert!(ran.client().lines[0].ended, "{parameters}");
        ran.assert_nothing_leaked();
        heard
    };
    let cases = [
        (r#"{"udp":true,"time":10}"#, Refusal::Protocol),
        (r#"{"sctp":true,"time":10}"#, Refusal::Protocol),
        (r#"{"time":10}"#, Refusal::Protocol),
        (r#"{"tcp":true,"time":86401}"#, Refusal::Duration),
        (r#"{"tcp":true,"parallel":129}"#, Refusal::Streams),
        (r#"{"tcp":true,"len":1048577}"#, Refusal::BlockSize),
        (r#"{"tcp":true,"window":16777217}"#, Refusal::Buffers),
        (r#"{"tcp":true,"omit":601}"#, Refusal::Omit),
        (r#"{"tcp":true,"congestion":"vegas"}"#, Refusal::Congestion),
        (r#"{"tcp":true,"reverse":true,"TOS":4}"#, Refusal::Unimplemented),
        (r#"{"tcp":true,"parallel":-1}"#, Refusal::Parameters),
        (r#"{"tcp":true,"time":"long"}"#, Refusal::Parameters),
        ("[]", Refusal::Parameters),
        ("{", Refusal::Parameters),
        ("", Refusal::Parameters),
    ];
    for (parameters, refusal) in cases {
        let told = [&[PARAM_EXCHANGE], &refusal.message()[..]].concat();
        assert_eq!(answer(parameters), told, "{parameters}");
    }
    let deep = "[".repeat(60_000);
    assert_eq!(answer(&deep)[1..], Refusal::Parameters.message());
}

#[test]
fn garbage_and_silence_cost_a_client_its_own_connection_alone() {
    let lines = vec![
        // No cookie: an HTTP request.
        Line::saying(Duration::ZERO, &[b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n"]),
        // A part of one.
        Line::saying(Duration::ZERO, &[b"abc"]),
        // Nothing at all.
        Line::saying(Duration::ZERO, &[]),
        // A document of 4 GiB.
        Line::saying(SECOND, &[&cookie(b'b'), &[0xff; 4]]),
        // An unknown message while streams open.
        Line::saying(2 * SECOND, &[&cookie(b'c'), &document(r#"{"tcp":true}"#), &[99]]),
        // Parameters that never end.
        Line::saying(3 * SECOND, &[&cookie(b'd'), &[0, 0, 1, 0, b'{']]),
        // A client that comes after all these.
        Line::saying(20 * SECOND, &[&cookie(b'e'), &document(r#"{"tcp":true}"#)]),
    ];
    let ran = meet(Stranger::new(25, lines));
    let heard: Vec<_> = ran.client().lines.iter().map(|line| &line.heard[..]).collect();
    let told = |before: &[u8], refusal: Refusal| [before, &refusal.message()].concat();
    assert_eq!(heard[0], told(&[], Refusal::Cookie));
    assert!(heard[1].is_empty() && heard[2].is_empty());
    assert_eq!(heard[3], told(&[PARAM_EXCHANGE], Refusal::Parameters));
    assert_eq!(heard[4], told(&[PARAM_EXCHANGE, CREATE_STREAMS], Refusal::Message));
    assert_eq!(heard[5], told(&[PARAM_EXCHANGE], Refusal::Message));
    assert_eq!(heard[6], [PARAM_EXCHANGE, CREATE_STREAMS]);
    for (place, line) in ran.client().lines[..6].iter().enumerate() {
        assert!(line.ended, "line {place}");
    }
    ran.assert_nothing_leaked();
}

/// Idle connections give way to new ones: 200 of them block no client, and no more than 64 are
/// kept.
#[test]
fn silent_connections_give_way_to_new_ones() {
    let mut lines: Vec<_> =
        (0..200).map(|turn| Line::saying(10 * MILLISECOND * turn, &[])).collect();
    let parameters = document(r#"{"tcp":true,"time":1}"#);
    lines.push(Line::saying(3 * SECOND, &[&cookie(b'a'), &parameters]));
    let ran = meet(Stranger::new(4, lines));
    let lines = &ran.client().lines;
    assert_eq!(lines[200].heard, [PARAM_EXCHANGE, CREATE_STREAMS]);
    let open = lines[..200].iter().filter(|line| line.open && !line.ended).count();
    assert!(open <= 64, "{open}");
    assert!(ran.server().statistics().open <= 65, "{:?}", ran.server().statistics());
    ran.assert_nothing_leaked();
}

#[test]
fn server_is_free_after_a_client_leaves_or_falls_silent() {
    let begin = |letter, at| {
        let parameters = document(r#"{"tcp":true,"time":3600,"parallel":1}"#);
        let control = Line::saying(at, &[&cookie(letter), &parameters]);
        [control, Line::saying(at + 150 * MILLISECOND, &[&cookie(letter), b"text"])]
    };
    let [mut gone, mut its] = begin(b'a', Duration::ZERO);
    gone.hangs_up = Some(SECOND);
    its.hangs_up = Some(SECOND);
    let [silent, and_its] = begin(b'b', 2 * SECOND);
    let [last, its_stream] = begin(b'c', 40 * SECOND);
    let ran = meet(Stranger::new(45, vec![gone, its, silent, and_its, last, its_stream]));
    let lines = &ran.client().lines;
    for place in [0, 2, 4] {
        assert_eq!(lines[place].heard[..4], [PARAM_EXCHANGE, CREATE_STREAMS, 1, 2], "line {place}");
    }
    assert!(lines[2].ended && lines[3].ended, "a client that moves nothing for 30 s is closed");
    assert!(!lines[4].ended);
    assert_eq!(ran.server().statistics().failed, 2);
    ran.assert_nothing_leaked();
}

#[test]
fn server_that_vanishes_in_the_midst_is_noticed() {
    // A server whose user ends it a second after the test began.
    struct Ending(Server<Shard>, u32);
    impl Model<Shard> for Ending {
        fn poll(&mut self, net: &mut Shard, now: Instant, budget: usize) -> bool {
            if now >= Instant::ZERO + SECOND && self.1 == 0 {
                self.1 = 1;
                self.0.shut_down(net);
                return false;
            }
            if now >= Instant::ZERO + SECOND + MILLISECOND && self.1 == 1 {
                self.1 = 2;
                self.0.close_all(net, now);
            }
            if self.1 == 1 { false } else { self.0.poll(net, now, budget) }
        }

        fn next_deadline(&self) -> Option<Instant> {
            let ends = [Some(SECOND), Some(SECOND + MILLISECOND), None];
            let end = ends[self.1 as usize].map(|at| Instant::ZERO + at);
            [self.0.next_deadline(), end].into_iter().flatten().min()
        }
    }
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        let client = Bulk::new(plan(direction, StopCondition::Elapsed(5 * SECOND)));
        let ran = Ran::new("rate=20M,delay=5ms", client, Ending(server(), 0));
        assert_eq!(ran.client().fault(), Some(Fault::Terminated), "{direction:?}");
        let moved: u64 = ran
            .client()
            .streams()
            .iter()
            .map(|stream| stream.totals().sent + stream.totals().received)
            .sum();
        assert!(moved > 500_000, "{direction:?}: {moved}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn test_has_one_control_connection_whichever_address_answers() {
    let refuses = whimbrel_sim::pair::server_at(whimbrel_wire::Family::V6, target().port);
    let sought = TransferPlan {
        target: refuses,
        destinations: vec![refuses.into(), target().into()],
        ..plan(Direction::Send, StopCondition::Bytes(1 << 20))
    };
    let ran = run("delay=5ms", sought);
    let client = ran.client();
    assert_eq!((client.conn_error(), client.fault()), (None, None));
    assert_eq!((client.plan().target, client.unreached().len()), (target(), 1));
    // Control and two streams, all to the server; no other connection was opened.
    let (shard, _) = ran.pair.world.host(ran.pair.server);
    assert_eq!(shard.counters().passive_opens, 3);
    ran.assert_nothing_leaked();
}
