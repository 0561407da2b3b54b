use alloc::string::ToString;

use super::*;

#[test]
fn shortage_shows_only_known_figures() {
    let all = PortShortage {
        first: 50_000,
        last: 50_003,
        in_use: Some(1),
        waiting: Some(3),
        next: Some(Duration::from_millis(1_250)),
        is_reuse_off: true,
    };
    let text = "ports 50000 to 50003: 1 in use, 3 in TIME-WAIT, the next comes free in 1.2 s";
    assert_eq!(all.to_string(), text);
    let soon = PortShortage { in_use: None, next: Some(Duration::from_millis(7)), ..all };
    let text = "ports 50000 to 50003: 3 in TIME-WAIT, the next comes free in 7 ms";
    assert_eq!(soon.to_string(), text);
    let nothing = PortShortage { in_use: None, waiting: None, next: None, ..all };
    assert_eq!(nothing.to_string(), "ports 50000 to 50003");
    assert!(all.remedy().starts_with("set net.ipv4.tcp_tw_reuse=1, widen net.ipv4."));
    let reused = PortShortage { is_reuse_off: false, ..all };
    assert!(reused.remedy().starts_with("widen net.ipv4.ip_local_port_range"));
}

#[test]
fn shard_shortages_add_up_and_host_shortage_counts_once() {
    let of_shard = |in_use, waiting, millis| PortShortage {
        first: 50_000,
        last: 50_009,
        in_use: Some(in_use),
        waiting: Some(waiting),
        next: Some(Duration::from_millis(millis)),
        is_reuse_off: false,
    };
    assert_eq!(of_shard(1, 4, 70).merge(of_shard(2, 3, 50)), of_shard(3, 7, 50));
    let never = PortShortage { next: None, ..of_shard(5, 0, 0) };
    assert_eq!(never.merge(of_shard(0, 5, 50)), of_shard(5, 5, 50));
    let of_host = PortShortage { in_use: None, ..of_shard(0, 9, 50) };
    assert_eq!(of_host.merge(of_host), of_host);
}
