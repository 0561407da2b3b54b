//! Metrics as Prometheus reads them, plain and by the names of node_exporter that docs/METRICS.md has a relabelling to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::needs;
use crate::operate::World;
use crate::running::{Running, await_that, succeed_with};
use crate::signals::free_address;

/// Counters that the relabelling names, one of them a gauge.
const NAMES: [&str; 10] = [
    "TcpPassiveOpens",
    "TcpInSegs",
    "TcpOutSegs",
    "TcpEstabResets",
    "TcpOutRsts",
    "TcpCurrEstab",
    "TcpExtDelayedACKs",
    "TcpExtListenDrops",
    "UdpInDatagrams",
    "UdpOutDatagrams",
];

#[test]
fn prometheus_scrapes_what_nstat_says_by_both_names() {
    if !needs::found(&["curl", "prometheus", "promtool"]) {
        return;
    }
    let mut world = World::new("prometheus");
    let [metrics, at] = [free_address(), free_address()];
    let wire = world.folder.join("wire");
    let server = format!("-w unix:{},addr=10.9.0.2/24", wire.display());
    let serve = world.start(&format!("serve --metrics {} {server}", metrics.port()));
    let config = config(&world.folder, &metrics.to_string());
    succeed_with(needs::command("promtool check config").arg(&config), Stdio::null());

    let data = world.folder.join("data");
    let mut prometheus = needs::command("prometheus --log.level=warn --web.listen-address");
    prometheus.arg(at.to_string()).arg(format!("--config.file={}", config.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", data.display()));
    let _prometheus = Running::start(prometheus.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let client = format!("load -n 5000 -c 20 --no-tui -w unix:{},addr=10.9.0.1/24", wire.display());
    world.ask(&format!("{client} http://10.9.0.2/"));
    // Both jobs have scraped 20 times, a second apart. On a starved machine one may take longer than that, and fails.
    let scrapes =
        |job: &str| query(&at.to_string(), &format!("sum_over_time(up{{job=\"{job}\"}}[1h])"));
    for count in 1..=20 {
        for job in ["plain", "whimbrel"] {
            await_that("another scrape", || scrapes(job).is_some_and(|it| it >= f64::from(count)));
        }
    }
    let mut moved = 0;
    for name in NAMES {
        let document: Value =
            serde_json::from_str(&world.ask(&format!("nstat {serve} -jz {name}"))).unwrap();
        let count = document["kernel"][name].as_f64().unwrap();
        moved += usize::from(count > 0.0);
        let (own, nodes) = names(name);
        // What came with the last segments is in the next scrape.
        await_that(name, || query(&at.to_string(), &own) == Some(count));
        await_that(name, || query(&at.to_string(), &nodes) == Some(count));
        // Never both names of one job.
        for other in [format!("{own}{{job=\"whimbrel\"}}"), format!("{nodes}{{job=\"plain\"}}")] {
            assert_eq!(query(&at.to_string(), &other), None, "{other}");
        }
    }
    assert!(moved >= 3, "only {moved} of the counters are above 0");
    check_names(&format!("http://{metrics}/metrics"));
}

/// Asserts that `promtool check metrics` finds only names that are not snake_case: those are Linux'.
fn check_names(url: &str) {
    let text = succeed_with(needs::command("curl -sS --max-time 20").arg(url), Stdio::null());
    let path = crate::scratch::scratch("prometheus.txt");
    fs::write(&path, text).unwrap();
    let mut promtool = needs::command("promtool check metrics");
    promtool.stdin(fs::File::open(&path).unwrap());
    let output = promtool.output().unwrap();
    let found = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(found.lines().count() > 50, "{found}");
    for line in found.lines() {
        assert!(line.starts_with("whimbrel_netstat_"), "{line}");
        assert!(line.ends_with("should be written in 'snake_case' not 'camelCase'"), "{line}");
    }
}

/// The name of a counter's metric, and the one after the relabelling.
fn names(counter: &str) -> (String, String) {
    let group = ["TcpExt", "Tcp", "Udp"].into_iter().find(|it| counter.starts_with(it)).unwrap();
    let rest = &counter[group.len()..];
    let total = if counter == "TcpCurrEstab" { "" } else { "_total" };
    (format!("whimbrel_netstat_{group}_{rest}{total}"), format!("node_netstat_{group}_{rest}"))
}

/// A configuration with the job of docs/METRICS.md, and one without its relabelling.
fn config(folder: &Path, metrics: &str) -> PathBuf {
    let page = include_str!("../../../../docs/METRICS.md");
    let (_, rest) = page.split_once("```yaml\n").expect("a configuration");
    let (documented, _) = rest.split_once("```").expect("its end");
    assert!(documented.contains("127.0.0.1:9464"));
    let documented = documented.replace("127.0.0.1:9464", metrics);
    let text = format!(
        "global: {{ scrape_interval: 1s }}\n{documented}  - job_name: plain\n    static_configs:\n      \
         - targets: [\"{metrics}\"]\n"
    );
    let path = folder.join("prometheus.yml");
    fs::write(&path, text).unwrap();
    path
}

/// The value of a query, if it has exactly one.
fn query(at: &str, query: &str) -> Option<f64> {
    let mut curl = needs::command("curl -sS --max-time 20 -G --data-urlencode");
    curl.arg(format!("query={query}")).arg(format!("http://{at}/api/v1/query"));
    // It may not listen yet.
    let answer: Value = serde_json::from_slice(&curl.output().unwrap().stdout).ok()?;
    match answer["data"]["result"].as_array()?.as_slice() {
        [one] => one["value"][1].as_str()?.parse().ok(),
        _ => None,
    }
}
