//! Hosts, their crashes, partitions and links.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use whimbrel::parts::link::reader;
use whimbrel::sim::{Faults, HubLinks, World};
use whimbrel::{LinkHandle, TcpListener};

use crate::scratch::scratch;
use crate::{connect, echo, exchange, panic_of};

#[test]
fn round_trip_takes_each_delay_twice() {
    let world = World::new(1);
    world.set_link("delay=3ms,back.delay=7ms".parse().unwrap());
    let (one, two) = (world.net("one"), world.net("two"));
    world.run(async {
        for address in [two.address(), two.address_v6(), one.lookup("TWO").unwrap()] {
            let began = Instant::now();
            one.stack().ping(address).await.unwrap();
            assert_eq!(began.elapsed(), Duration::from_millis(20));
        }
    });
    assert_eq!(world.elapsed(), Duration::from_millis(60));
    assert_eq!(world.counters().forwarded, 6);
}

#[test]
fn unknown_name_is_not_found() {
    let world = World::new(1);
    let net = world.net("one");
    let error = net.lookup("other").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "no host of this world has the name \"other\"");
    assert_eq!(net.lookup("192.0.2.1").unwrap().to_string(), "192.0.2.1");
    assert!(panic_of(|| world.crash("other")).contains("\"other\""));
}

#[test]
fn crashed_host_is_silent_and_resets_after_restart() {
    let world = World::new(1);
    world.set_link("delay=5ms".parse().unwrap());
    world.host("echo", echo);
    let net = world.net("client");
    world.run(async {
        let mut stream = connect(&net, "echo").await.unwrap();
        exchange(&mut stream, b"before").await.unwrap();
        world.crash("echo");
        world.crash("echo");
        stream.write_all(b"lost").await.unwrap();
        let mut text = [0; 4];
        let silence = timeout(Duration::from_secs(60), stream.read_exact(&mut text)).await;
        assert!(silence.is_err(), "a crashed host answers: {silence:?}");
        world.restart("echo");
        // A retransmission, which the fresh stack does not know.
        let error = stream.read_exact(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        exchange(&mut connect(&net, "echo").await.unwrap(), b"after").await.unwrap();
    });
}

/// Counts its drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn crash_drops_program_and_fails_its_sockets() {
    let (drops, errors) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let world = World::new(1);
    let (counted, noted) = (Arc::clone(&drops), Arc::clone(&errors));
    world.host("server", move |net| {
        let (dropped, noted) = (Dropped(Arc::clone(&counted)), Arc::clone(&noted));
        async move {
            let _dropped = dropped;
            let listener = TcpListener::bind(net.stack(), "0.0.0.0:7").await?;
            let (mut stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let error = stream.read_u8().await.unwrap_err();
                noted.lock().unwrap().push(error.to_string());
            });
            tokio::spawn(std::future::pending::<()>());
            std::future::pending().await
        }
    });
    let net = world.net("client");
    world.run(async {
        let stream = connect(&net, "server").await.unwrap();
        let crashed = world.net("server").stack().clone();
        sleep(Duration::from_secs(1)).await;
        assert_eq!((drops.load(Ordering::Relaxed), world.spawned_tasks()), (0, 2));
        world.crash("server");
        tokio::task::yield_now().await;
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        sleep(Duration::from_secs(1)).await;
        let error = TcpListener::bind(&crashed, "0.0.0.0:8").await.unwrap_err();
        assert!(error.to_string().contains("its host has crashed"), "{error}");
        // The one that awaits nothing goes on.
        assert_eq!(world.spawned_tasks(), 1);
        let errors = errors.lock().unwrap();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("its host has crashed"), "{errors:?}");
        drop(stream);
    });
    world.restart("server");
    drop(world);
    assert_eq!(drops.load(Ordering::Relaxed), 2, "the world ends its programs");
}

#[test]
fn partition_loses_packets_between_its_hosts_only() {
    let world = World::new(1);
    world.set_link("delay=5ms".parse().unwrap());
    world.host("echo", echo);
    let (one, two) = (world.net("one"), world.net("two"));
    world.run(async {
        let mut parted = connect(&one, "echo").await.unwrap();
        world.partition("one", "echo");
        let blocked = timeout(Duration::from_secs(9), exchange(&mut parted, b"parted")).await;
        assert!(blocked.is_err());
        assert!(world.counters().partitioned > 3, "{:?}", world.counters());
        exchange(&mut connect(&two, "echo").await.unwrap(), b"whole").await.unwrap();
        world.heal("one", "echo");
        let mut text = [0; 6];
        parted.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"parted");
    });
}

#[test]
fn links_stay_the_same_over_restart() {
    let world = World::new(1);
    let (one, _two) = (world.net("one"), world.net("two"));
    let links = world.links("two");
    links.down.set("delay=40ms".parse().unwrap());
    world.restart("two");
    world.run(async {
        let began = Instant::now();
        one.stack().ping(one.lookup("two").unwrap()).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_millis(40));
    });
    assert_eq!((links.down.counters().delivered, links.up.counters().delivered), (1, 1));
}

#[test]
fn failure_of_program_fails_test() {
    let failing = |act: fn() -> whimbrel::sim::Outcome| {
        panic_of(|| {
            let world = World::new(1);
            world.host("failing", move |_| async move {
                sleep(Duration::from_secs(1)).await;
                act()
            });
            world.run(std::future::pending::<()>());
        })
    };
    assert_eq!(failing(|| panic!("a wrong sum")), "a wrong sum");
    let error = failing(|| Err("no disk".into()));
    assert_eq!(error, "the program of host \"failing\" failed: no disk");
}

#[test]
fn panic_of_rule_fails_test() {
    let failing = |choose: fn(&HubLinks) -> &LinkHandle| {
        panic_of(|| {
            let world = World::new(1);
            world.host("echo", echo);
            let net = world.net("client");
            choose(&world.links("client")).on(|_| panic!("a wrong rule"));
            let waiting = world.run(async { connect(&net, "echo").await });
            panic!("{waiting:?} after {:?}", world.elapsed());
        })
    };
    // The hub runs the rules of links to hosts, and stacks run those of their own.
    assert_eq!(failing(|links| &links.down), "a wrong rule");
    let text = "the stack of host \"client\" has ended: a worker of it stopped";
    assert_eq!(failing(|links| &links.up), text);
}

#[test]
fn runtime_around_world_is_refused() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let text = panic_of(|| runtime.block_on(async { drop(World::new(1)) }));
    assert!(text.contains("use #[test] instead of #[tokio::test]"), "{text}");
    let world = World::new(1);
    let text = panic_of(|| world.run(async { world.run(async {}) }));
    assert!(text.starts_with("World::run: there is a runtime of tokio already"), "{text}");
}

#[test]
fn names_are_told_apart_without_case_and_from_addresses() {
    let world = World::new(1);
    let net = world.net("One");
    assert_eq!(
        (world.net("oNE").address(), net.lookup("one").unwrap()),
        (net.address(), net.address())
    );
    assert_eq!(net.name(), "One");
    assert_eq!(panic_of(|| world.host("ONE", echo)), "there is a host \"ONE\" already");
    for name in ["", "10.0.0.9", "fd00::9"] {
        assert!(panic_of(|| world.host(name, echo)).contains("is no name of a host"));
    }
    let text = panic_of(|| world.partition("one", "ONE"));
    assert_eq!(text, "a partition needs two hosts, and both names are of \"one\"");
}

#[test]
fn faults_of_too_few_hosts_are_refused() {
    let world = World::new(1);
    let _hosts = (world.net("one"), world.net("two"));
    let second = Duration::from_secs(1);
    let refused = |hosts: &[&str]| {
        let faults = Faults::among(hosts.iter().copied()).partitions(second, second);
        panic_of(|| world.faults(faults))
    };
    assert_eq!(refused(&["one"]), "Partition needs 2 hosts, and Faults::among names 1");
    assert!(refused(&["one", "two", "ONE"]).contains("names a host twice"));
    assert!(refused(&["one", "other"]).contains("no host of this world has the name \"other\""));
    let text = panic_of(|| world.faults(Faults::among([""; 0]).crashes(second, second)));
    assert_eq!(text, "Crash needs 1 hosts, and Faults::among names 0");
}

#[test]
fn longest_times_of_faults_do_not_overflow() {
    let world = World::new(1);
    let _hosts = (world.net("one"), world.net("two"));
    let faults = Faults::among(["one", "two"]).crashes(Duration::MAX, Duration::MAX);
    let rare = faults.clone().partitions(Duration::MAX, Duration::MAX).until(Duration::MAX);
    world.faults(rare);
    world.faults(faults.partitions(Duration::ZERO, Duration::MAX));
    world.run(async { sleep(Duration::from_secs(3_600)).await });
}

#[test]
fn program_listens_before_test_begins() {
    let world = World::new(1);
    let net = world.net("client");
    for number in 0..100 {
        world.host(&format!("echo{number}"), echo);
    }
    // Links have no delay here.
    world.run(async { connect(&net, "echo99").await }).unwrap();
}

#[test]
fn test_that_waits_forever_ends_at_time_limit() {
    let world = World::new(1);
    world.set_time_limit(Duration::from_secs(3_600));
    let text = panic_of(|| world.run(std::future::pending()));
    assert!(text.contains("has not ended after 3600s"), "{text}");
}

#[test]
fn configuration_of_stack_applies_to_named_host() {
    let world = World::new(1);
    world.configure(|name, builder| match name {
        "one" => builder.set("net.ipv4.tcp_syn_retries", "1"),
        _ => Ok(builder),
    });
    let (one, two) = (world.net("one"), world.net("two"));
    assert_eq!(one.stack().tunables().syn_retries, 1);
    assert_ne!(two.stack().tunables().syn_retries, 1);
}

#[test]
fn capture_has_packets_of_all_hosts_and_losses() {
    let folder = scratch("sim-capture");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("run.pcapng");
    let world = World::new(1);
    world.record(&path).unwrap();
    let (one, _two) = (world.net("one"), world.net("two"));
    let address = one.lookup("two").unwrap();
    world.run(async {
        one.stack().ping(address).await.unwrap();
        world.partition("one", "two");
        one.stack().ping(address).await.unwrap_err();
    });
    let bytes = fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("hub") && text.contains("one") && text.contains("two"));
    assert!(text.contains("lost: partition"));
    // A request and a reply, each sent and received; the request that was lost at the hub.
    assert_eq!(reader::read(&bytes).unwrap().packets.len(), 4 + 2);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn faults_end_and_leave_the_network_whole() {
    let world = World::new(5);
    world.set_link("delay=5ms".parse().unwrap());
    let starts = Arc::new(AtomicUsize::new(0));
    for name in ["one", "two"] {
        let starts = Arc::clone(&starts);
        world.host(name, move |net| {
            starts.fetch_add(1, Ordering::Relaxed);
            echo(net)
        });
    }
    let second = Duration::from_secs(1);
    let faults = Faults::among(["one", "two"]).crashes(5 * second, second);
    world.faults(faults.partitions(3 * second, second).until(60 * second));
    let net = world.net("client");
    world.run(async {
        sleep(100 * second).await;
        for name in ["one", "two"] {
            exchange(&mut connect(&net, name).await.unwrap(), b"whole").await.unwrap();
            net.stack().ping(net.lookup(name).unwrap()).await.unwrap();
        }
        let between = world.net("one");
        between.stack().ping(net.lookup("two").unwrap()).await.unwrap();
    });
    let starts = starts.load(Ordering::Relaxed);
    assert!((7..30).contains(&starts), "{starts} starts");
}
