//! Loads under control while they run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::load::{
    Controls, Ending, LOOK, LoadPlan, LoadState, Repeat, Runs, States, StopCondition, Wanted,
};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::record::Connections;
use whimbrel_apps::transport::Transport;
use whimbrel_apps::{ConnError, Model, Part, Record};
use whimbrel_base::Instant;
use whimbrel_sim::pair::PairConfig;
use whimbrel_stack::Shard;
use whimbrel_tcp::Tunables;

use crate::exchanges;
use crate::world::{NoServer, Ran};

const SECOND: Duration = Duration::from_secs(1);

/// A change of a load's settings.
#[derive(Clone, Copy, Debug)]
enum Move {
    Pause,
    GoOn,
    Connections(u32),
    /// Records the states of the connections.
    Look,
    End,
}

/// Settings of all parts.
#[derive(Debug)]
struct TestControls(Mutex<Wanted>);

impl Controls for TestControls {
    fn wanted(&self, part: Part) -> Wanted {
        let wanted = *self.0.lock().unwrap();
        Wanted { connections: part.share(wanted.connections.into()) as u32, ..wanted }
    }
}

/// A load, and the changes to it with their times in milliseconds.
struct Driven {
    runs: Runs<Shard>,
    controls: Arc<TestControls>,
    moves: VecDeque<(Duration, Move)>,
    seen: Vec<States>,
}

impl Driven {
    fn new(plan: LoadPlan, moves: &[(u64, Move)]) -> Self {
        Self::repeated(plan, Repeat::times(1, SECOND), moves, Part::WHOLE)
    }

    fn repeated(plan: LoadPlan, repeat: Repeat, moves: &[(u64, Move)], part: Part) -> Self {
        let wanted = Wanted { connections: plan.connections, state: LoadState::Running };
        let controls = Arc::new(TestControls(Mutex::new(wanted)));
        let runs = Runs::new(plan.part(part), repeat).with_controls(controls.clone(), part);
        let moves = moves.iter().map(|(at, step)| (Duration::from_millis(*at), *step)).collect();
        Self { runs, controls, moves, seen: Vec::new() }
    }

    fn do_next(&mut self, step: Move, net: &mut Shard, now: Instant) {
        let mut wanted = self.controls.0.lock().unwrap();
        match step {
            Move::Pause => wanted.state = LoadState::Paused,
            Move::GoOn => wanted.state = LoadState::Running,
            Move::Connections(count) => wanted.connections = count,
            Move::Look => self.seen.push(self.runs.current().states()),
            Move::End => self.runs.end(net, now),
        }
    }

    fn record(&self) -> &Record {
        &self.runs.finished().last().unwrap().record
    }
}

impl Model<Shard> for Driven {
    fn poll(&mut self, net: &mut Shard, now: Instant, budget: usize) -> bool {
        let passed = now.since(Instant::ZERO);
        while let Some((_, step)) = self.moves.pop_front_if(|(at, _)| *at <= passed) {
            self.do_next(step, net, now);
        }
        let more = self.runs.poll(net, now, budget);
        let next = self.runs.next_deadline();
        assert!(self.is_done() || next.is_some_and(|next| next <= now + LOOK), "{next:?}");
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        let step = self.moves.front().map(|(at, _)| Instant::ZERO + *at);
        [self.runs.next_deadline(), step].into_iter().flatten().min()
    }

    fn is_done(&self) -> bool {
        self.runs.is_done()
    }
}

/// One byte there and one back, on a path whose round trip takes 20 ms.
fn plan(ending: Ending, connections: u32, until: StopCondition) -> LoadPlan {
    LoadPlan { connections, until, ..exchanges::plan(1, 1, ending) }
}

fn run(driven: Driven) -> Ran<Driven, PeerServer<Shard>> {
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    Ran::new("delay=10ms", driven, PeerServer::new(role, CloseMode::Second))
}

fn total(record: &Record) -> u64 {
    record.intervals.counts().iter().map(|count| count.exchanges).sum()
}

#[test]
fn pause_is_not_counted_and_keeps_connections_open() {
    let plan = plan(Ending::KeepAlive, 4, StopCondition::Elapsed(2 * SECOND));
    let paused = [(1_005, Move::Pause), (1_500, Move::Look), (4_005, Move::GoOn)];
    let ran = run(Driven::new(plan, &paused));
    let record = ran.client().record();
    assert_eq!((record.elapsed(), record.paused), (2 * SECOND, 3 * SECOND));
    assert_eq!((record.opened, record.failed()), (4, 0));
    assert_eq!(ran.client().seen, [States { idle: 4, ..States::default() }]);
    // Opening took a round trip; exchanges under way at the pause count as if it took no time.
    assert_eq!((record.answered(), total(record)), (4 * 99, 4 * 99));
    assert_eq!(record.intervals.counts().len(), 2);
    // From there the rhythm is another.
    assert_eq!(record.service.max() / 1_000_000, 40, "the first had to open");
    assert_eq!(ran.server().statistics().requests, 4 * 100);
    ran.assert_nothing_leaked();
}

#[test]
fn exchanges_do_not_fall_due_in_a_pause() {
    let plan = LoadPlan {
        rate: Some(100.0),
        ..plan(Ending::KeepAlive, 8, StopCondition::Elapsed(4 * SECOND))
    };
    let ran = run(Driven::new(plan, &[(1_005, Move::Pause), (61_005, Move::GoOn)]));
    let record = ran.client().record();
    let close = ran.client().runs.finished()[0].close;
    assert_eq!((record.elapsed(), record.paused), (4 * SECOND, 60 * SECOND));
    assert_eq!((record.answered() + close.in_flight, close.never_begun), (400, 0));
    assert_eq!(record.corrected.max(), record.service.max());
    assert!(record.service.max() < 41_000_000, "{}", record.service.max());
    let counts = record.intervals.counts()[..4].iter().map(|count| count.exchanges);
    // Exchanges under way at the pause count at its start, which is in the second second.
    assert!(
        counts.clone().all(|count| count.abs_diff(100) <= 4),
        "{:?}",
        counts.collect::<Vec<_>>()
    );
}

#[test]
fn pause_does_not_lengthen_a_wait_for_a_connection() {
    // One connection answers 50 a second of the 100 that fall due.
    let worst = |moves: &[(u64, Move)]| {
        let late = plan(Ending::KeepAlive, 1, StopCondition::Elapsed(4 * SECOND));
        let ran = run(Driven::new(LoadPlan { rate: Some(100.0), ..late }, moves));
        let (record, close) = (ran.client().record(), ran.client().runs.finished()[0].close);
        assert_eq!(record.answered() + close.in_flight + close.never_begun, 400);
        assert_eq!(record.service.max() / 10_000_000, 4);
        Duration::from_nanos(record.corrected.max())
    };
    let (without, with) = (worst(&[]), worst(&[(2_000, Move::Pause), (62_000, Move::GoOn)]));
    assert!(without > SECOND && without < 3 * SECOND, "{without:?}");
    assert!(with.abs_diff(without) <= Duration::from_millis(25), "{with:?}, not {without:?}");
}

#[test]
fn pause_does_not_change_the_warm_up() {
    let pauses = [(995, 3_000), (1_005, 3_000), (500, 3_000)];
    for (pause, go_on) in pauses {
        let until = StopCondition::Elapsed(SECOND);
        let warm = LoadPlan { warmup: SECOND, ..plan(Ending::KeepAlive, 1, until) };
        let ran = run(Driven::new(warm, &[(pause, Move::Pause), (go_on, Move::GoOn)]));
        let record = ran.client().record();
        // Exchanges that began and ended in the measured second.
        assert!((49..=50).contains(&record.answered()), "{pause}: {}", record.answered());
        assert_eq!(record.answered(), total(record));
        assert_eq!(record.elapsed(), SECOND);
    }
}

#[test]
fn paused_load_ends_on_request_only() {
    let plan = plan(Ending::KeepAlive, 2, StopCondition::Elapsed(SECOND));
    let ran = run(Driven::new(plan, &[(505, Move::Pause), (9_505, Move::End)]));
    let record = ran.client().record();
    let half = Duration::from_millis(505);
    assert_eq!((record.elapsed(), record.paused), (half, 9 * SECOND));
    // Exchanges that began when half a second had passed are under way, and count.
    assert_eq!(record.answered(), 2 * 25);
    assert_eq!(ran.client().runs.finished()[0].close, Default::default());
    ran.assert_nothing_leaked();
}

#[test]
fn unanswered_exchange_times_out_during_a_pause() {
    let quick = plan(Ending::KeepAlive, 2, StopCondition::Elapsed(5 * SECOND));
    let quick = LoadPlan { timeout: SECOND, ..quick };
    let moves = [(500, Move::Pause), (900, Move::Look), (3_000, Move::End)];
    let ran = Ran::new("delay=10ms", Driven::new(quick, &moves), NoServer);
    let client = ran.client();
    assert_eq!(client.seen, [States { asking: 2, ..States::default() }]);
    let conn_errors = &client.record().conn_errors;
    assert_eq!(conn_errors.iter().collect::<Vec<_>>(), [(&ConnError::ResponseTimeout, &2)]);
    assert_eq!(client.record().elapsed(), Duration::from_millis(500));
}

#[test]
fn unanswered_exchange_waits_through_a_final_pause() {
    let stalled = plan(Ending::KeepAlive, 1, StopCondition::Elapsed(5 * SECOND));
    let stalled = LoadPlan { rate: Some(1.0), ..stalled };
    let moves = [(500, Move::Pause), (3_000, Move::End)];
    let ran = Ran::new("delay=10ms", Driven::new(stalled, &moves), NoServer);
    let waited = ran.client().record().corrected.max();
    assert_eq!(waited / 100_000_000, 30, "{waited} ns");
}

#[test]
fn connections_open_at_once_and_close_after_a_response() {
    let plan = plan(Ending::KeepAlive, 2, StopCondition::Elapsed(3 * SECOND));
    let moves = [
        (1_005, Move::Connections(6)),
        (1_010, Move::Look),
        (1_999, Move::Look),
        (2_010, Move::Connections(1)),
        (2_012, Move::Look),
        (2_100, Move::Look),
    ];
    let ran = run(Driven::new(plan, &moves));
    let record = ran.client().record();
    let states = |opening, asking| States { opening, asking, ..States::default() };
    assert_eq!(ran.client().seen, [states(4, 2), states(0, 6), states(0, 6), states(0, 1)]);
    assert_eq!((record.opened, record.failed()), (6, 0));
    assert_eq!(record.connections, Connections { least: 1, most: 6, last: 1 });
    // A round trip each, except that a connection opens for one, and 5 ms of each phase are left
    // over.
    let rounds = 2 * 49 + (2 * 50 + 4 * 49) + 49;
    assert!(record.answered().abs_diff(rounds) <= 6, "{} of {rounds}", record.answered());
    assert_eq!(ran.server().statistics().accepted, 6);
    ran.assert_nothing_leaked();
}

#[test]
fn pause_closes_excess_idle_connections_and_opens_none() {
    let plan = plan(Ending::KeepAlive, 5, StopCondition::Elapsed(SECOND));
    let moves = [
        (505, Move::Pause),
        (600, Move::Connections(2)),
        (650, Move::Look),
        (700, Move::Connections(4)),
        (750, Move::Look),
        (800, Move::GoOn),
        (820, Move::Look),
    ];
    let ran = run(Driven::new(plan, &moves));
    let record = ran.client().record();
    let idle = States { idle: 2, ..States::default() };
    let after = States { asking: 2, opening: 2, ..States::default() };
    assert_eq!(ran.client().seen, [idle, idle, after]);
    assert_eq!((record.opened, record.failed()), (7, 0));
    assert_eq!(record.connections, Connections { least: 2, most: 5, last: 4 });
    ran.assert_nothing_leaked();
}

#[test]
fn total_is_reached_exactly_with_any_number_of_connections() {
    for ending in [Ending::KeepAlive, Ending::Client, Ending::Reset] {
        let plan = plan(ending, 4, StopCondition::Exchanges(200));
        let moves = [
            (105, Move::Connections(1)),
            (305, Move::Connections(20)),
            (335, Move::Pause),
            (500, Move::Connections(3)),
            (800, Move::GoOn),
        ];
        let ran = run(Driven::new(plan, &moves));
        let record = ran.client().record();
        assert_eq!((record.answered(), record.failed()), (200, 0), "{ending:?}");
        assert_eq!(ran.server().statistics().requests, 200, "{ending:?}");
        assert_eq!(record.connections, Connections { least: 1, most: 20, last: 3 });
        ran.assert_nothing_leaked();
    }
}

#[test]
fn slots_that_wait_for_a_port_go_when_they_have_had_it() {
    // Four ports, in TIME-WAIT for a second: eight connections wait for them in turn.
    let tunables = Tunables {
        port_first: 50_000,
        port_last: 50_003,
        msl_remote: SECOND / 2,
        msl_link: SECOND / 2,
        ..Tunables::default()
    };
    let config = PairConfig { tunables: [tunables, Tunables::default()], ..PairConfig::default() };
    let plan = plan(Ending::Client, 8, StopCondition::Exchanges(24));
    let moves = [(500, Move::Look), (505, Move::Connections(1)), (4_800, Move::Look)];
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    let server = PeerServer::new(role, CloseMode::Second);
    let ran = Ran::configured("delay=10ms", config, Driven::new(plan, &moves), server);
    let record = ran.client().record();
    assert_eq!((record.answered(), record.failed()), (24, 0));
    let [before, after] = ran.client().seen[..] else { panic!("{:?}", ran.client().seen) };
    assert_eq!(before, States { starved: 8, ..States::default() });
    assert!(after.starved + after.opening + after.asking + after.closing <= 1, "{after:?}");
    ran.assert_nothing_leaked();
}

#[test]
fn next_run_starts_after_the_pause_with_all_connections() {
    let plan = plan(Ending::KeepAlive, 1, StopCondition::Elapsed(SECOND));
    let moves = [(505, Move::Connections(3)), (1_500, Move::Pause), (7_000, Move::GoOn)];
    let repeat = Repeat::times(2, SECOND);
    let ran = run(Driven::repeated(plan, repeat, &moves, Part::WHOLE));
    let [first, second] = ran.client().runs.finished() else { panic!("two runs") };
    assert_eq!(first.record.connections, Connections { least: 1, most: 3, last: 3 });
    assert_eq!(second.record.connections, Connections::of(3));
    assert_eq!(second.record.began, Instant::ZERO + 7 * SECOND);
    assert_eq!((second.record.paused, second.record.elapsed()), (Duration::ZERO, SECOND));
    assert_eq!((second.record.opened, second.record.answered()), (3, 3 * 49));
}

#[test]
fn parts_that_are_steered_together_make_up_the_whole() {
    let at_rate = LoadPlan {
        rate: Some(90.0),
        ..plan(Ending::KeepAlive, 9, StopCondition::Elapsed(5 * SECOND))
    };
    let mut sum = Record::new(SECOND);
    let (mut in_flight, mut asking) = (0, 0);
    for number in 0..2 {
        let part = Part { number, of: 2 };
        let moves = [
            (1_005, Move::Connections(4)),
            (2_005, Move::Pause),
            (9_005, Move::GoOn),
            (10_000, Move::Look),
        ];
        let once = Repeat::times(1, SECOND);
        let ran = run(Driven::repeated(at_rate.clone(), once, &moves, part));
        sum += ran.client().record();
        in_flight += ran.client().runs.finished()[0].close.in_flight;
        asking += ran.client().seen[0].asking;
    }
    assert_eq!((sum.elapsed(), sum.paused), (5 * SECOND, 7 * SECOND));
    assert_eq!(sum.answered() + in_flight, 450);
    assert_eq!(sum.connections, Connections { least: 4, most: 9, last: 4 });
    assert!((1..=4).contains(&asking), "{asking}");
}

#[test]
fn shard_reports_its_usage() {
    let plan = plan(Ending::Client, 3, StopCondition::Exchanges(30));
    let ran = run(Driven::new(plan, &[]));
    let (shard, _) = ran.pair.world.host(ran.pair.client);
    let stack_usage = Transport::stack_usage(shard).unwrap();
    assert_eq!((stack_usage.time_wait, stack_usage.ports_in_use), (30, Some(30)));
    let tunables = shard.tunables();
    assert_eq!(stack_usage.ports, u64::from(tunables.port_last - tunables.port_first) + 1);
}
