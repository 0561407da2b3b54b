//! Runs that repeat, and many of them.

use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use whimbrel::sim::{World, explore, twice};
use whimbrel_io::process::end_with_starter;

use crate::{connect, echo, exchange, panic_of};

/// Echoes over a bad path.
fn lossy(world: &World) {
    world.set_link("rate=10M,delay=10ms,loss=3%,dup=1%,reorder=2%".parse().unwrap());
    world.host("echo", echo);
    let net = world.net("client");
    world.run(async {
        let mut stream = connect(&net, "echo").await.unwrap();
        for number in 0..20 {
            exchange(&mut stream, &vec![number; 5_000]).await.unwrap();
        }
    });
}

#[test]
fn same_seed_sends_same_packets() {
    let run = |seed| {
        let world = World::new(seed);
        lossy(&world);
        (world.fingerprint(), world.fingerprint_bytes())
    };
    let (first, other) = (run(7), run(8));
    assert_eq!(first, run(7));
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1);
    assert_ne!(first.0, first.1);
}

#[test]
fn fingerprint_ignores_text_unless_asked() {
    let run = |text: u8| {
        let world = World::new(1);
        world.host("echo", echo);
        let net = world.net("client");
        world.run(async {
            let mut stream = connect(&net, "echo").await.unwrap();
            exchange(&mut stream, &[text; 100]).await.unwrap();
        });
        (world.fingerprint(), world.fingerprint_bytes())
    };
    assert_eq!(run(1).0, run(2).0);
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn twice_accepts_what_repeats() {
    assert_eq!(twice(lossy), twice(lossy));
}

#[test]
fn twice_shows_first_packet_that_differs() {
    let runs = AtomicUsize::new(0);
    let text = panic_of(|| {
        twice(|world| {
            let extra = runs.fetch_add(1, Ordering::Relaxed);
            let (one, two) = (world.net("one"), world.net("two"));
            world.run(async {
                let address = two.address();
                one.stack().ping(address).await.unwrap();
                sleep(Duration::from_millis(10 + extra as u64)).await;
                one.stack().ping(address).await.unwrap();
            });
        });
    });
    assert!(text.starts_with("seed 1: packet 3 differs"), "{text}");
    assert!(text.contains("first run: 0.010000000 s 10.0.0.1:0 > 10.0.0.2:0 protocol 1"), "{text}");
    assert!(text.contains("second run: 0.011000000 s"), "{text}");
}

#[test]
fn twice_notices_packet_that_only_one_run_has() {
    let runs = AtomicUsize::new(0);
    let text = panic_of(|| {
        twice(|world| {
            let (one, two) = (world.net("one"), world.net("two"));
            if runs.fetch_add(1, Ordering::Relaxed) == 1 {
                world.run(async { one.stack().ping(two.address()).await.unwrap() });
            }
        });
    });
    assert!(text.contains("packet 1 differs") && text.contains("first run: no packet"), "{text}");
}

#[test]
fn explore_runs_each_seed_and_names_first_that_fails() {
    let seen = Mutex::new(Vec::new());
    explore(10..30, |world| seen.lock().unwrap().push(world.seed()));
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (10..30).collect::<Vec<_>>());

    // Without an end.
    let text = panic_of(|| {
        explore(0.., |world| assert!(world.seed() % 100 < 40, "{} is too many", world.seed()));
    });
    assert_eq!(text, "seed 40: 40 is too many\nrun only this one with WHIMBREL_SIM_SEED=40");
}

#[test]
fn variable_selects_one_seed() {
    let name = "repeat::variable_selects_one_seed";
    if let Ok(seed) = env::var(VARIABLE) {
        let runs = AtomicUsize::new(0);
        explore(0..1_000, |world| {
            assert_eq!(world.seed().to_string(), seed);
            runs.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        return;
    }
    let run = |seed: &str| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).env(VARIABLE, seed);
        end_with_starter(&mut command).output().unwrap()
    };
    assert!(run("77777").status.success());
    let output = run("seven");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("WHIMBREL_SIM_SEED=seven: give a number"), "{text}");
}

#[test]
fn hour_of_echoes_over_lossy_path_ends() {
    let world = World::new(1);
    // A round trip of 200 ms between two hosts.
    world.set_link("delay=50ms,loss=0.5%".parse().unwrap());
    world.host("echo", echo);
    let net = world.net("client");
    let echoes = world.run(async {
        let mut stream = connect(&net, "echo").await.unwrap();
        let (end, mut echoes) = (Instant::now() + Duration::from_secs(3_600), 0);
        while Instant::now() < end {
            exchange(&mut stream, b"whimbrel").await.unwrap();
            echoes += 1;
        }
        echoes
    });
    assert!((14_000..18_000).contains(&echoes), "{echoes} echoes");
}

const VARIABLE: &str = "WHIMBREL_SIM_SEED";
