//! wrk loads `whimbrel serve` under each profile over a TUN device, nginx behind `whimbrel forward` there, and
//! for comparison nginx on the kernel.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use whimbrel_io::{Stop, text};
use whimbrel_lab::{Bound, Measured, Setup, Unit};

use super::testbed::{Folder, Running, Testbed};
use super::{CURE, REPORT, Real, RealRow, WORKS, at_least, profile_of, seconds, setting, within};

pub(super) const REAL: Real = Real {
    case: "unikraft-nginx",
    rows: [
        &[
            RealRow { who: "lwip-2.1", settings: WHOLE, role: REPORT, bounds: SWINGING },
            RealRow { who: "lwip-2.1+msl5s", settings: WHOLE, role: WORKS, bounds: FLAT },
            RealRow { who: "whimbrel", settings: WHOLE, role: CURE, bounds: CURED },
            RealRow { who: "lwip-2.1", settings: WHOLE_NGINX, role: REPORT, bounds: SWINGING },
            RealRow { who: "whimbrel", settings: WHOLE_NGINX, role: CURE, bounds: CURED },
            RealRow { who: NGINX, settings: WHOLE, role: None, bounds: &[] },
        ],
        // A thousand ports instead of 28,232, and the shorter lifetime shorter in proportion.
        &[
            RealRow { who: "lwip-2.1", settings: QUICK, role: REPORT, bounds: STALLED },
            RealRow {
                who: "lwip-2.1+msl5s",
                settings: QUICK_MSL,
                role: WORKS,
                bounds: &[at_least("second_to_first", 0.5)],
            },
            RealRow { who: "whimbrel", settings: QUICK, role: CURE, bounds: CURED },
            RealRow { who: "lwip-2.1", settings: QUICK_NGINX, role: REPORT, bounds: STALLED },
            RealRow { who: "whimbrel", settings: QUICK_NGINX, role: CURE, bounds: CURED },
            RealRow { who: NGINX, settings: QUICK, role: None, bounds: &[] },
        ],
    ],
    measure,
};

const NGINX: &str = "Linux, nginx";
const WHOLE: &[(&str, &str)] = &[("lasts", "60s"), ("runs", "4")];
/// The server is nginx, behind `forward`.
const WHOLE_NGINX: &[(&str, &str)] = &[("lasts", "60s"), ("runs", "4"), SERVER];
const SERVER: (&str, &str) = ("server", "nginx");
const QUICK: &[(&str, &str)] = &[("lasts", "5s"), ("runs", "2"), ("ports", "32768-33767")];
const QUICK_NGINX: &[(&str, &str)] =
    &[("lasts", "5s"), ("runs", "2"), ("ports", "32768-33767"), SERVER];
const QUICK_MSL: &[(&str, &str)] =
    &[("lasts", "5s"), ("runs", "2"), ("ports", "32768-33767"), ("msl", "150ms")];
/// Less than a fifth of the server's capacity, with all connections waiting for SYNs.
const STALLED: &[Bound] = &[within("most", 0.0, 5_000.0), at_least("syns_again", 30.0)];
/// And a run that nearly stands still. Which one does is chance: every ten seconds Linux goes on from another port
/// (since 5.18), near the ports that the server remembers or far from them.
const SWINGING: &[Bound] =
    &[within("most", 0.0, 5_000.0), at_least("syns_again", 30.0), at_least("spread", 80.0)];
/// No request waits, on any machine.
const CURED: &[Bound] = &[at_least("least", 7_000.0), within("syns_again", 0.0, 5.0)];
const FLAT: &[Bound] = &[within("spread", 0.0, 40.0), at_least("second_to_first", 0.6)];

fn measure(setup: &Setup, stop: &Stop) -> Result<Measured, String> {
    let testbed = Testbed::new(stop)?;
    if let Some((first, last)) = setting(setup, "ports").and_then(|ports| ports.split_once('-')) {
        testbed.set("net.ipv4.ip_local_port_range", &format!("{first} {last}"))?;
    }
    let folder = Folder::new().map_err(|error| format!("a folder for nginx: {error}"))?;
    let server = Server::start(&testbed, setup, &folder.0)?;
    let at = server.at;
    let lasts = seconds(setup, "lasts");
    let runs: usize = setting(setup, "runs").and_then(|runs| runs.parse().ok()).unwrap_or(1);
    let (url, time) = (format!("http://{at}/"), format!("-d{}s", lasts.as_secs()));
    let (mut rates, mut hung) = (Vec::new(), 0);
    for run in 0..runs {
        if run > 0 {
            testbed.pause(GAP)?;
        }
        let (before, began) = (server.answered(&testbed)?, Instant::now());
        match testbed.run("wrk", &["-t14", "-c30", &time, &url], lasts + LONGER) {
            Ok(told) => rates.push(rate(&told)?),
            // A thread of wrk's that never had a response never looks whether its time is over.
            Err(_) if !testbed.is_stopped() && setup.profile != NGINX => {
                let count = server.answered(&testbed)?.saturating_sub(before);
                rates.push(count as f64 / began.elapsed().as_secs_f64());
                hung += 1;
            }
            Err(error) => return Err(error),
        }
    }
    let mut measured = Measured::default();
    figures(&rates, &mut measured);
    let again = testbed.syns_again();
    if hung > 0 {
        measured.notes.push(format!(
            "{hung} of {runs} runs of wrk did not end because a thread had no response; they were \
             stopped, and the figures are the server's"
        ));
    }
    measured.add("syns_again", Unit::Count, again as f64);
    measured.notes.push(format!(
        "wrk -t14 -c30 {time} {url}, {runs} times; its kernel retransmitted {again} SYNs \
         (TcpExtTCPSynRetrans)"
    ));
    Ok(measured)
}

/// A web server that closes a connection after the number of requests of the report's nginx.
struct Server {
    at: SocketAddr,
    /// The program at that address, and the one behind it if there is one.
    program: Running,
    behind: Option<Running>,
}

impl Server {
    /// Starts the server of a row.
    fn start(testbed: &Testbed<'_>, setup: &Setup, folder: &Path) -> Result<Self, String> {
        let has_nginx = setup.profile == NGINX || setting(setup, SERVER.0) == Some(SERVER.1);
        let nginx = has_nginx.then(|| nginx(testbed, folder)).transpose()?;
        let (at, mut program, behind) = match (setup.profile, nginx) {
            (NGINX, Some(nginx)) => (ON_KERNEL, nginx, None),
            (_, Some(nginx)) => (ON_STACK, forward(testbed, setup, folder)?, Some(nginx)),
            (_, None) => (ON_STACK, serve(testbed, setup)?, None),
        };
        let at: SocketAddr = at.parse().map_err(|_| "no address")?;
        testbed.await_answer(&mut program, at)?;
        Ok(Self { at, program, behind })
    }

    /// Number of requests answered.
    fn answered(&self, testbed: &Testbed<'_>) -> Result<u64, String> {
        match self.behind {
            None => Ok(self.program.answered()),
            Some(_) => {
                testbed.within(answered_by_nginx)?.map_err(|error| format!("nginx: {error}"))
            }
        }
    }
}

/// Requests so far, as nginx's stub_status counts them behind accepted and handled connections.
fn answered_by_nginx() -> io::Result<u64> {
    let mut stream = TcpStream::connect(ON_KERNEL)?;
    stream.set_read_timeout(Some(LONGER))?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let counts = text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1);
    let requests = counts.and_then(|counts| counts.split_whitespace().nth(2)?.parse().ok());
    requests.ok_or_else(|| io::Error::other(text))
}

/// The stack as that server.
fn serve(testbed: &Testbed<'_>, setup: &Setup) -> Result<Running, String> {
    let mut words = vec!["-w", WIRE, "-l", ON_STACK, "--requests-per-connection", "22"];
    words.extend(["--service-rate", "27645"]);
    words.extend(profile_of(setup).into_iter().flatten());
    let msl = setting(setup, "msl").map(|msl| format!("msl={msl}"));
    words.extend(msl.iter().flat_map(|msl| ["-S", msl.as_str()]));
    testbed.start_server(&words)
}

/// The stack in front of nginx.
fn forward(testbed: &Testbed<'_>, setup: &Setup, folder: &Path) -> Result<Running, String> {
    let to = format!("unix:{}/nginx", text::path(folder));
    let mut words = vec!["forward", "-w", WIRE, "-l", ON_STACK, "--to", &to];
    words.extend(profile_of(setup).into_iter().flatten());
    testbed.start_whimbrel(&words)
}

/// Debian's nginx on the kernel, in one process that ends with this one.
fn nginx(testbed: &Testbed<'_>, folder: &Path) -> Result<Running, String> {
    let here = text::path(folder);
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {here}/{name};"))
        .join(" ");
    let text = format!(
        "daemon off; master_process off; pid {here}/pid; error_log stderr crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 22; {paths}\n\
         server {{ listen {ON_KERNEL}; listen unix:{here}/nginx backlog=511;\n\
         location = /status {{ stub_status; }} location / {{ return 200 '{body}'; }} }} }}\n",
        body = "w".repeat(128)
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", text::path(&path)))?;
    let path = text::path(&path).to_string();
    let prefix = here.to_string();
    let words = ["-c", &path, "-p", &prefix, "-e", "stderr"];
    let mut nginx = testbed.start("nginx", &words)?;
    testbed.await_answer(&mut nginx, ON_KERNEL.parse().map_err(|_| "no address")?)?;
    Ok(nginx)
}

/// Requests per second, as wrk prints them.
fn rate(told: &str) -> Result<f64, String> {
    let rate = told.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    rate.and_then(|rate| rate.trim().parse().ok()).ok_or_else(|| format!("wrk says: {told}"))
}

fn figures(rates: &[f64], measured: &mut Measured) {
    for (name, rate) in ["run_1", "run_2", "run_3", "run_4"].iter().zip(rates) {
        measured.add(name, Unit::PerSecond, *rate);
    }
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    measured.add("least", Unit::PerSecond, least);
    measured.add("most", Unit::PerSecond, most);
    measured.add("spread", Unit::Percent, 100.0 * (most - least) / most.max(1.0));
    if let [first, second, ..] = rates {
        measured.add("second_to_first", Unit::Count, second / first.max(1e-9));
    }
}

const WIRE: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";
const ON_STACK: &str = "10.9.0.2:80";
const ON_KERNEL: &str = "127.0.0.1:8080";
const GAP: Duration = Duration::from_secs(1);
/// Time that wrk may take in addition to its duration.
const LONGER: Duration = Duration::from_secs(3);
