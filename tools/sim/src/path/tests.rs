use std::time::Duration;

use whimbrel_tcp::conn::{BufferSize, SocketOptions};
use whimbrel_tcp::tunables::BufferPolicy;

use super::{Captured, PathPlan};

fn plan(link: &str, seconds: u64) -> PathPlan {
    let marks = [0, seconds].map(Duration::from_secs).to_vec();
    PathPlan::new(link.parse().unwrap(), marks)
}

#[test]
fn flow_fills_a_path_whose_product_its_window_holds() {
    let recv_size = BufferSize::Exact(64 << 10);
    let set = SocketOptions { recv_size, ..SocketOptions::default() };
    let plan = PathPlan { options: [set; 2], ..plan("rate=10M,delay=5ms", 5) };
    let report = plan.run(Captured::Nothing, &|| true).unwrap();
    let rate = report.flows[0].rate(0, 1, Duration::from_secs(5));
    assert!((9.0e6..9.7e6).contains(&rate), "{rate}");
    assert_eq!(report.lasted, Duration::from_secs(5));
}

#[test]
fn flow_of_so_many_bytes_ends_when_they_are_acknowledged() {
    let plan = PathPlan { bytes: Some(100_000), ..plan("rate=10M,delay=5ms", 60) };
    let report = plan.run(Captured::All, &|| true).unwrap();
    let completed = report.flows[0].completed.unwrap();
    assert!((80..300).contains(&completed.as_millis()), "{completed:?}");
    assert_eq!(report.lasted, completed);
    assert_eq!(report.flows[0].snapshot.as_ref().unwrap().tally.bytes_acked, 100_000);
    assert!(report.capture.is_some_and(|file| file.len() > 100_000));
}

#[test]
fn flows_begin_when_they_are_to() {
    let starts = [0, 2].map(Duration::from_secs).to_vec();
    let plan = PathPlan { starts, ..plan("rate=10M,delay=5ms,queue=1bdp", 3) };
    let report = plan.run(Captured::Nothing, &|| true).unwrap();
    let [first, second] = [0, 1].map(|flow| report.flows[flow].acked[1]);
    assert!(first > second && second > 0, "{first} {second}");
    assert!(report.flows[0].snapshot.as_ref().unwrap().info_counts.total_retrans > 0);
}

#[test]
fn path_that_nothing_passes_ends_with_a_reason() {
    let error = plan("loss=100%", 600).run(Captured::Nothing, &|| true).unwrap_err();
    assert!(error.contains("a flow ended early"), "{error}");
}

#[test]
fn unwanted_run_ends() {
    let error = plan("rate=10M,delay=5ms", 600).run(Captured::Nothing, &|| false).unwrap_err();
    assert_eq!(error, "interrupted");
}

#[test]
fn rules_of_1998_give_the_fddi_rate_of_1998() {
    // 70 ms of path and 12 ms of hosts: windows of 896 KiB in 64 and 512 MB, and 192 KiB. By those
    // rules a buffer has the size that was asked for, and none grows.
    let cases: [(u32, u64, f64); 3] = [
        (917_504, 64_000_000, 76.1e6),
        (917_504, 512_000_000, 87.6e6),
        (192 << 10, 32_000_000, 18.7e6),
    ];
    for (window, bytes, expected) in cases {
        let set = SocketOptions {
            send_size: BufferSize::Asked(2 << 20),
            recv_size: BufferSize::Asked(window),
            ..SocketOptions::default()
        };
        let long = plan("rate=100M,delay=41ms,mtu=4352,queue=100000p", 200);
        let mut plan = PathPlan { bytes: Some(bytes), options: [set; 2], ..long };
        plan.tunables.buffers = BufferPolicy::Route;
        let report = plan.run(Captured::Nothing, &|| true).unwrap();
        let took = report.flows[0].completed.unwrap();
        let rate = bytes as f64 * 8.0 / took.as_secs_f64();
        assert!((0.9..1.1).contains(&(rate / expected)), "{window}: {rate} for {expected}");
    }
}
