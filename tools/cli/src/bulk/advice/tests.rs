use super::*;

#[test]
fn size_is_shown_as_it_is_typed() {
    assert_eq!(typed(0), "1k");
    assert_eq!(typed(65_535 * 2), "128k");
    assert_eq!(typed(600 << 10), "1M");
    assert_eq!(typed(u64::MAX), "1024M");
}

#[test]
fn window_explains_only_rates_near_its_limit() {
    for (most, explains) in [(0.5, false), (0.95, true), (1.0, true), (1.9, true), (2.5, false)] {
        assert_eq!(EXPLAINS.contains(&most), explains, "{most} times the rate");
    }
}

#[test]
fn settings_and_names_are_those_of_explain() {
    let text = settings(Id::RwndLimited);
    assert!(text.starts_with("RWND_LIMITED\n  Linux: receiver: net.ipv4.tcp_rmem"), "{text}");
    assert!(text.contains("\n  FreeBSD: receiver: net.inet.tcp.recvbuf_max"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(
        Limit::ALL.map(words).map(|it| Wait::ALL.iter().any(|wait| wait.name() == it)),
        [true; 4]
    );
}
