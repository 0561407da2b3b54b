//! A transfer over `whimbrel link` between two namespaces: this stack at one end and the kernel at the
//! other, and for comparison the kernel at both.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use whimbrel_io::Stop;
use whimbrel_lab::{Measured, Setup, Unit};

use super::testbed::{Running, Testbed};
use super::{BETTER, CURE, REPORT, Real, RealRow, at_least, profile_of, setting, within};

pub(super) const REAL: Real = Real {
    case: "fddi-70ms",
    rows: [
        &[
            RealRow {
                who: "freebsd-2.2.5",
                settings: &[("bytes", "32M"), ROUTE, WINDOW],
                role: REPORT,
                bounds: &[within("rate", 5.0, 9.0)],
            },
            RealRow {
                who: "freebsd-2.2.5+fix",
                settings: &[("bytes", "32M"), ROUTE, ("window", "192k")],
                role: BETTER,
                bounds: &[within("rate", 15.0, 24.0)],
            },
            RealRow {
                who: "freebsd-2.2.5+fix",
                settings: &[("bytes", "512M"), ROUTE, WINDOW],
                role: BETTER,
                bounds: &[at_least("rate", 70.0)],
            },
            RealRow {
                who: "whimbrel",
                settings: &[("bytes", "512M")],
                role: CURE,
                bounds: &[at_least("share", 90.0)],
            },
            RealRow {
                who: FROM_KERNEL,
                settings: &[("bytes", "512M")],
                role: CURE,
                bounds: &[at_least("share", 90.0)],
            },
            RealRow { who: KERNEL, settings: &[("bytes", "512M")], role: None, bounds: &[] },
        ],
        // A tenth more or less of the line than in the lab: slow start takes a part of a short transfer.
        &[
            RealRow {
                who: "freebsd-2.2.5",
                settings: &[("bytes", "6M"), ROUTE, WINDOW],
                role: REPORT,
                bounds: &[within("rate", 4.0, 9.0)],
            },
            RealRow {
                who: "freebsd-2.2.5+fix",
                settings: &[("bytes", "48M"), ROUTE, WINDOW],
                role: BETTER,
                bounds: &[at_least("rate", 40.0)],
            },
            RealRow {
                who: "whimbrel",
                settings: &[("bytes", "96M")],
                role: CURE,
                bounds: &[at_least("share", 60.0)],
            },
            RealRow { who: KERNEL, settings: &[("bytes", "96M")], role: None, bounds: &[] },
        ],
    ],
    measure,
};

const ROUTE: (&str, &str) = ("route", "64k");
const WINDOW: (&str, &str) = ("window", "896k");
const FROM_KERNEL: &str = "Linux to whimbrel";
const KERNEL: &str = "Linux to Linux";

fn measure(setup: &Setup, stop: &Stop) -> Result<Measured, String> {
    let [near, far] = [Testbed::new(stop)?, Testbed::new(stop)?];
    for testbed in [&near, &far] {
        testbed.set("net.ipv4.ip_forward", "1")?;
        testbed.set("net.ipv4.tcp_rmem", "4096 131072 67108864")?;
        testbed.set("net.ipv4.tcp_wmem", "4096 16384 67108864")?;
    }
    let _link = link(&near, &far)?;
    let is_kernel_sender = matches!(setup.profile, FROM_KERNEL | KERNEL);
    let (at, _server) = sink(&far, setup.profile == FROM_KERNEL)?;
    let bytes = setting(setup, "bytes").unwrap_or("1M");
    let mut words = vec!["bulk", "send", at, "--peer", "plain", "--json", "--no-tui", "-n", bytes];
    match is_kernel_sender {
        // Whatever the host has: a fresh namespace may have another.
        true => words.extend(["-w", "kernel:", "-C", "cubic"]),
        false => words.extend(["-w", "tun:whim0,addr=10.2.0.2/24,host=10.2.0.1,offload=off"]),
    }
    let window = setting(setup, "window");
    words.extend(window.iter().flat_map(|window| ["--window", *window]));
    let route =
        setting(setup, "route").map(|it| format!("10.1.0.0/24,sendpipe={it},recvpipe={it}"));
    words.extend(route.iter().flat_map(|route| ["--route", route.as_str()]));
    words.extend(profile_of(setup).into_iter().flatten());
    let told = near.run_whimbrel(&words, MOST)?;
    let told: Value = serde_json::from_str(&told).map_err(|error| format!("bulk: {error}"))?;
    let of = |pointer: &str| told.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let rate = of("/summary/sent_rate");
    let mut measured = Measured::default();
    measured.add("rate", Unit::Megabits, rate / 1e6);
    measured.add("share", Unit::Percent, 100.0 * rate / ROOM);
    measured.add("seconds", Unit::Time, of("/summary/duration"));
    let congestion = match is_kernel_sender {
        true => {
            format!("the kernel's congestion control is cubic (TCP_CONGESTION; {})", host(&near))
        }
        false => format!("the kernel's end receives ({})", host(&near)),
    };
    measured.notes.push(format!("whimbrel {}; {congestion}", words.join(" ")));
    Ok(measured)
}

/// FDDI across a continent, and the ways of both kernels to each other's guests.
fn link(near: &Testbed<'_>, far: &Testbed<'_>) -> Result<Running, String> {
    let end = |name: &str, testbed: &Testbed<'_>, at: &str| {
        format!("tun:{name},netns={},addr={at}/24", testbed.path().display())
    };
    let ends = [end("near", near, "10.1.0.1"), end("far", far, "10.1.0.2")];
    let path = ["rate=100M", "delay=35ms", "mtu=4352", "queue=1bdp"];
    let mut words = vec!["link", "--quiet", "--seed", "1", &ends[0], &ends[1]];
    words.extend(path);
    let link = near.start_whimbrel(&words)?;
    for (testbed, route) in [(near, "10.3.0.0/24 via 10.1.0.2"), (far, "10.2.0.0/24 via 10.1.0.1")]
    {
        // The interface is there once there is a way over it.
        let mut tries = 0;
        while let Err(error) = testbed.ip(&format!("route add {route}")) {
            tries += 1;
            if tries == TRIES {
                return Err(format!("the path did not start: {error}"));
            }
            testbed.pause(Duration::from_millis(50))?;
        }
    }
    Ok(link)
}

/// Starts a server that receives all data, and waits until it listens.
fn sink(far: &Testbed<'_>, is_ours: bool) -> Result<(&'static str, Running), String> {
    let (at, wire) = match is_ours {
        true => ("10.3.0.2:9", "tun:whim1,addr=10.3.0.2/24,host=10.3.0.1,offload=off"),
        false => ("10.1.0.2:9", "kernel:"),
    };
    let mut server = far.start_whimbrel(&["serve", "-w", wire, "-l", at, "--sink", "--quiet"])?;
    let address = at.parse().map_err(|_| "no address")?;
    far.await_answer(&mut server, address)?;
    Ok((at, server))
}

/// Which congestion control the namespace began with.
fn host(testbed: &Testbed<'_>) -> String {
    let own = testbed.within(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"));
    let own = own.ok().and_then(Result::ok).unwrap_or_default();
    format!("its namespace has {}", own.trim())
}

/// Attempts to reach the path.
const TRIES: u32 = 100;
/// For how long a transfer may take.
const MOST: Duration = Duration::from_secs(300);
/// Bits per second of text on this line: 100 Mb/s less headers, 4,300 of 4,352 bytes.
const ROOM: f64 = 100e6 * 4_300.0 / 4_352.0;
