//! Flows that neither side reads, over each relay: `run`, `run -w` and `forward`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use crate::netns::Net;
use crate::running::{Running, await_that};

/// The program of both sides, which says what it does.
const PROGRAM: &str = include_str!("../data/stall.py");
/// The programs that it needs.
pub(crate) const PROGRAMS: [&str; 3] = ["python3", "ss", "nstat"];

/// The command line of one side.
pub(crate) fn side<'a>(side: &'a str, address: &'a str, folder: &'a str) -> [&'a str; 6] {
    ["python3", "-c", PROGRAM, side, address, folder]
}

/// Starts the far side in `net`, which listens at `address`.
pub(crate) fn far(net: &Net, address: &str, folder: &str) -> Running {
    let [program, words @ ..] = side("far", address, folder);
    let far = Running::start(net.command(program).args(words).stdin(Stdio::null()));
    await_that("the far side listens", || Path::new(folder).join("listens-far").exists());
    far
}

/// Watches the relay while all flows are stalled, and both sides afterwards. The kernel of `net` probes.
pub(crate) fn watch(relay: &Running, far: Running, net: &Net, folder: &Path) {
    let document = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    for side in ["stalled-near", "stalled-far"] {
        await_that(side, || folder.join(side).exists());
    }
    let probes = || -> u64 {
        let text = net.run("nstat -asz TcpExtTCPWinProbe");
        text.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    let (began, busy, first) = (Instant::now(), relay.cpu_time(), probes());
    await_that("windows are probed", || probes() >= first + 32);
    let busy = relay.cpu_time() - busy;
    assert!(busy < began.elapsed() / 5, "it works for nothing: {busy:?}");
    let status = fs::read_to_string(format!("/proc/{}/status", relay.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(peak < 160 << 10, "{peak} KiB");
    fs::write(folder.join("go"), []).unwrap();
    assert!(far.output().status.success());
    for (from, to) in [("sent-near", "got-far"), ("sent-far", "got-near")] {
        await_that(to, || folder.join(to).exists());
        let (sent, got) = (document(from), document(to));
        assert!(got == sent && got.as_object().unwrap().len() == 8, "{from} {sent}, {to} {got}");
    }
}
