use super::*;

#[test]
fn parts_of_a_load_are_the_whole_and_fall_due_in_turn() {
    let second = Duration::from_secs(1);
    let whole = LoadPlan {
        target: Endpoint::new(Address::from_v4_bytes([127, 0, 0, 1]), 80),
        destinations: Vec::new(),
        exchange: Exchange { request: Bytes::new(), answer: ResponseEnd::Bytes(1) },
        connections: 11,
        until: StopCondition::Exchanges(100),
        rate: Some(300.0),
        offset: Duration::ZERO,
        ending: Ending::KeepAlive,
        timeout: second,
        connect_timeout: second,
        warmup: Duration::ZERO,
        interval: second,
        correction: Correction::On,
        local: Vec::new(),
        fast_open: FastOpen::Off,
    };
    let parts: Vec<_> = (0..3).map(|number| whole.part(Part { number, of: 3 })).collect();
    let of = |part: &LoadPlan| {
        let millis = part.offset.as_secs_f64() * 1e3;
        (part.connections, part.until, part.rate, millis.round() as u64)
    };
    let expected = [
        (4, StopCondition::Exchanges(34), Some(100.0), 0),
        (4, StopCondition::Exchanges(33), Some(100.0), 3),
        (3, StopCondition::Exchanges(33), Some(100.0), 7),
    ];
    assert_eq!(parts.iter().map(of).collect::<Vec<_>>(), expected);
}
