//! A tour of wrong uses: values that mean nothing, files, disks, ports and devices that are not to be
//! had, rights that are missing, servers that are dead or stall, and every signal. Each ends in time,
//! with the exit code that is documented and one clear message, and leaves nothing behind.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::needs;
use crate::netns::Net;

mod case;
mod devices;
mod peers;
mod places;
mod run;
mod signals;
mod values;

use case::{Case, Within};
use run::Station;

const TABLES: [&[Case]; 5] =
    [values::CASES, places::CASES, peers::CASES, devices::CASES, signals::CASES];

#[test]
fn tour_has_at_least_150_different_wrong_uses() {
    let all: Vec<_> = TABLES.into_iter().flatten().collect();
    assert!(all.len() >= 150, "{}", all.len());
    for (place, case) in all.iter().enumerate() {
        let again = all.iter().skip(place + 1).any(|other| other.is_like(case));
        assert!(!again, "twice: {case:?}");
    }
}

#[test]
fn invalid_values_are_refused() {
    tour(values::CASES);
}

#[test]
fn unavailable_resources_are_reported() {
    tour(places::CASES);
}

#[test]
fn dead_or_stalled_servers_are_reported() {
    tour(peers::CASES);
}

#[test]
fn missing_devices_and_rights_are_reported() {
    tour(devices::CASES);
}

#[test]
fn every_signal_has_its_documented_effect() {
    tour(signals::CASES);
}

/// Runs all of them, two at a time, and reports all faults.
fn tour(cases: &[Case]) {
    let wrong = Mutex::new(Vec::new());
    for within in [Within::Anywhere, Within::Ordinary, Within::Net] {
        let here: Vec<_> = cases.iter().filter(|case| case.within == within).collect();
        let next = AtomicUsize::new(0);
        let stations = || (0..WORKERS).map(|_| station(within)).collect::<Option<Vec<_>>>();
        let Some(stations) = (!here.is_empty()).then(stations).flatten() else { continue };
        thread::scope(|scope| {
            for station in stations {
                scope.spawn(|| {
                    let station = station;
                    while let Some(case) = here.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = station.run(case) {
                            wrong.lock().unwrap().push(error);
                        }
                    }
                });
            }
        });
    }
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Place of such cases, unless the system has none: those cases are then skipped.
fn station(within: Within) -> Option<Station> {
    match within {
        Within::Anywhere => Some(Station::Anywhere),
        // Without the node they would report that.
        Within::Ordinary if !Path::new(needs::TUN).exists() => {
            needs::skip("no /dev/net/tun");
            None
        }
        Within::Ordinary if !rustix::process::geteuid().is_root() => Some(Station::Anywhere),
        Within::Ordinary => needs::found(&["setpriv"]).then(Station::ordinary),
        Within::Net => Net::with_veth(&["mount", "umount"]).map(Station::Net),
    }
}

/// The machines that tests run on have two processors, and most cases wait.
const WORKERS: usize = 2;
