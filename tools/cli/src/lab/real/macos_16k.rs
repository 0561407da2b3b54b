//! `whimbrel load` under each profile against a server on the kernel, and for comparison `oha` on the
//! kernel.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use whimbrel_io::Stop;
use whimbrel_lab::{Measured, Setup, Unit};

use super::testbed::Testbed;
use super::{CURE, INFERRED, REPORT, Real, RealRow, at_least, profile_of, seconds, within};
use crate::machine;

pub(super) const REAL: Real = Real {
    case: "macos-16k",
    rows: [
        &[
            OLD,
            // 8,192 connections per second is what these ports carry, if the machine does.
            RealRow {
                who: "macos-12+msl1s",
                settings: LASTS,
                role: INFERRED,
                bounds: &[within("answered", 20_000.0, 98_304.0)],
            },
            RealRow {
                who: "macos-12+wide-ports",
                settings: LASTS,
                role: INFERRED,
                bounds: &[within("answered", 20_000.0, 32_768.0)],
            },
            OWN,
            RealRow { who: OHA, settings: LASTS, role: None, bounds: &[] },
        ],
        &[OLD, OWN, RealRow { who: OHA, settings: LASTS, role: None, bounds: &[] }],
    ],
    measure,
};

const OHA: &str = "Linux, oha";
const LASTS: &[(&str, &str)] = &[("lasts", "10s")];
const OLD: RealRow = RealRow {
    who: "macos-12",
    settings: LASTS,
    role: REPORT,
    bounds: &[within("answered", 16_384.0, 16_384.0), within("rate_at_end", 0.0, 0.0)],
};
/// More than 16,384, without an end.
const OWN: RealRow = RealRow {
    who: "whimbrel",
    settings: LASTS,
    role: CURE,
    bounds: &[
        within("failed", 0.0, 0.0),
        at_least("answered", 20_000.0),
        at_least("rate_at_end", 500.0),
    ],
};

fn measure(setup: &Setup, stop: &Stop) -> Result<Measured, String> {
    let testbed = Testbed::new(stop)?;
    let serve = ["serve", "-w", "kernel:", "-l", "0.0.0.0:8080", "--close", "client", "--quiet"];
    let mut server = testbed.start_whimbrel(&serve)?;
    testbed.await_answer(&mut server, SocketAddr::from(([127, 0, 0, 1], 8080)))?;
    let lasts = seconds(setup, "lasts");
    match setup.profile {
        OHA => oha(&testbed, lasts),
        _ => load(&testbed, setup, lasts),
    }
}

fn load(testbed: &Testbed<'_>, setup: &Setup, lasts: Duration) -> Result<Measured, String> {
    let time = format!("{}s", lasts.as_secs());
    let mut words = vec!["load", "http://10.9.0.1:8080/", "-K", "--close", "client", "--json"];
    words.extend(["-w", "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1", "--no-tui", "-z", &time]);
    words.extend(profile_of(setup).into_iter().flatten());
    let told = testbed.run_whimbrel(&words, lasts + LONGER)?;
    let told: Value = serde_json::from_str(&told).map_err(|error| format!("load: {error}"))?;
    let of = |pointer: &str| told.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let last = told["intervals"].as_array().and_then(|all| all.last());
    let at_end = last.and_then(|it| it["rate"].as_f64()).unwrap_or(f64::NAN);
    let mut measured = Measured::default();
    measured.add("answered", Unit::Count, of("/summary/answered"));
    measured.add("rate_at_end", Unit::PerSecond, at_end);
    measured.add("failed", Unit::Count, of("/summary/failed"));
    measured.add("waiting", Unit::Count, of("/summary/port_waits/exchanges"));
    measured.notes.push(format!("whimbrel {}", words.join(" ")));
    Ok(measured)
}

/// `oha` over the kernel's TCP, where it is installed.
fn oha(testbed: &Testbed<'_>, lasts: Duration) -> Result<Measured, String> {
    let mut measured = Measured::default();
    if !machine::is_installed("oha") {
        measured.notes.push("not measured: no oha in PATH (cargo install oha)".into());
        return Ok(measured);
    }
    let time = format!("{}s", lasts.as_secs());
    let words =
        ["--no-tui", "--disable-keepalive", "-c", "50", "-z", &time, "http://127.0.0.1:8080/"];
    let told = testbed.run("oha", &words, lasts + LONGER)?;
    measured.add("answered", Unit::Count, answered(&told)?);
    measured.notes.push(format!("oha {}", words.join(" ")));
    Ok(measured)
}

/// As in `[200] 16384 responses`.
fn answered(told: &str) -> Result<f64, String> {
    let count = told.lines().find_map(|line| line.trim().strip_prefix("[200]"));
    let count = count.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    count.ok_or_else(|| format!("oha says: {told}"))
}

/// Time that a load may take in addition to its duration.
const LONGER: Duration = Duration::from_secs(20);
