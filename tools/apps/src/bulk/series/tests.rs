use super::*;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn sender_stats(cwnd: u64, rwnd: u64, sndbuf: u64) -> SenderStats {
    let limited = Limited { cwnd: millis(cwnd), rwnd: millis(rwnd), sndbuf: millis(sndbuf) };
    SenderStats { limited, ..SenderStats::default() }
}

fn times(shares: &Shares) -> [u64; 4] {
    Limit::ALL.map(|limit| shares.time(limit).as_millis() as u64)
}

#[test]
fn interval_holds_its_own_counts() {
    let mut series = Series::keeping(usize::MAX);
    let mut close = |until, sender_stats, idle, omitted| {
        let totals = Totals::default();
        let stream = StreamState { totals, sender_stats: Some(sender_stats), idle };
        series.close_interval(millis(until), stream, omitted);
    };
    close(100, sender_stats(60, 40, 0), Duration::ZERO, true);
    close(200, sender_stats(70, 60, 20), Duration::ZERO, false);
    close(300, sender_stats(170, 60, 20), millis(80), false);
    let shares: Vec<_> = series.samples().iter().map(|sample| times(&sample.shares)).collect();
    // app, rwnd, cwnd, sndbuf
    assert_eq!(shares[0], [0, 40, 60, 0]);
    assert_eq!(shares[1], [50, 20, 10, 20], "the rest is the application's");
    assert_eq!(shares[2], [80, 0, 20, 0], "it gave nothing while bytes were under way");
    assert_eq!(times(series.shares()), [130, 20, 30, 20], "what is omitted is left out");
}
