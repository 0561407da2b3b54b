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
}
