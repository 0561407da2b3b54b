use super::*;

#[test]
fn lingering_is_kept_in_whole_seconds_rounded_up() {
    let mut settings = Settings::new(&Tunables::default());
    assert_eq!(settings.linger(), None);
    let cases = [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (u64::MAX, 65_534)];
    for (millis, seconds) in cases {
        settings.set_linger(Some(Duration::from_millis(millis)));
        assert_eq!(settings.linger(), Some(Duration::from_secs(seconds)), "{millis} ms");
    }
    settings.set_linger(None);
    assert_eq!(settings.linger(), None);
}

#[test]
fn sizes_begin_as_the_stacks_and_are_kept_within_bounds() {
    let tunables = Tunables { send_buffer: 50_000, ..Tunables::default() };
    let mut settings = Settings::new(&tunables);
    assert_eq!(settings.send_size(), 50_000);
    settings.set_send_size(0);
    settings.set_recv_size(u32::MAX);
    assert_eq!((settings.send_size(), settings.recv_size()), (2 << 10, 1 << 30));
    settings.set_recv_size(BufferSize::Exact(1 << 30));
    settings.set_send_size(BufferSize::Floor(70_000));
    let options = settings.options(None);
    assert_eq!(options.recv_size, BufferSize::Exact(1 << 30));
    assert_eq!(options.send_size, BufferSize::Floor(70_000));
    settings.set_send_size(BufferSize::Auto);
    assert_eq!(settings.options(None).send_size, BufferSize::Auto);
    assert_eq!(settings.send_size(), 70_000, "what it was");
}

#[test]
fn a_congestion_control_is_kept_beside_the_switches() {
    let mut settings = Settings::new(&Tunables::default());
    assert_eq!(settings.congestion_control(), None);
    settings.set_nodelay(true);
    for number in (0..Settings::CONGESTION_CONTROLS).rev() {
        let algorithm = Algorithm::of_number(number);
        settings.set_congestion_control(algorithm);
        assert_eq!(settings.congestion_control(), Some(algorithm));
        assert_eq!(settings.options(None).congestion_control, Some(algorithm));
    }
    settings.set_keepalive(true);
    assert_eq!(settings.congestion_control(), Some(Algorithm::of_number(0)));
    assert!(settings.nodelay() && settings.keepalive() && !settings.quickack());
}

#[test]
fn the_shard_is_told_what_was_set_and_nothing_else() {
    let mut settings = Settings::new(&Tunables { hop_limit: 30, ..Tunables::default() });
    assert_eq!(settings.hop_limit(), 30);
    assert_eq!(settings.options(None), SocketOptions::default());
    settings.set_hop_limit(3);
    settings.set_nodelay(true);
    settings.set_keepalive(true);
    settings.set_recv_size(100_000);
    settings.set_quickack(true);
    let options = settings.options(None);
    let hops = (options.overrides.ttl, options.overrides.hop_limit);
    assert_eq!(options.overrides.acks, AckTiming::AtOnce);
    assert_eq!(hops, (Some(3), Some(3)), "whichever family it is");
    assert_eq!((options.nagle, options.keep_alive), (Nagle::Off, KeepAlive::On));
    let sizes = (options.send_size, options.recv_size);
    assert_eq!(sizes, (BufferSize::Auto, BufferSize::Asked(100_000)));
}
