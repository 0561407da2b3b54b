use super::*;

fn fields(patterns: &[&str]) -> Vec<&'static str> {
    let patterns: Vec<_> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let Ok(shown) = matching(&patterns) else { panic!("{patterns:?}") };
    shown.iter().map(|info| info.field).collect()
}

#[test]
fn a_pattern_is_a_name_of_any_system_or_a_part_of_one() {
    assert_eq!(fields(&[]).len(), TUNABLES.len());
    let msl = ["msl_remote", "msl_link", "msl_loopback"];
    assert_eq!(fields(&["net.inet.tcp.msl"]), msl, "a group's name is all of it");
    assert_eq!(fields(&["tcp_rmem"]), ["recv_buffer", "recv_buffer_max"]);
    assert_eq!(fields(&["tcp_strong_iss"]), ["isn"]);
    assert_eq!(fields(&["TW.RE"]), fields(&["tw.re*"]));
    assert_eq!(fields(&["*_iss_*", "isn"]), ["isn", "isn_step"], "in their own order");
    for pattern in ["", "*"] {
        assert_eq!(fields(&[pattern]).len(), TUNABLES.len());
    }
}

#[test]
fn unknown_pattern_is_answered_with_similar_names() {
    let refused = |pattern: &str| match matching(&["isn".into(), pattern.into()]) {
        Err(Failure::Usage(text)) => text,
        _ => panic!("{pattern}"),
    };
    assert!(refused("tw.sin").contains("perhaps tw.syn"));
    assert!(refused("x*y").starts_with("PATTERN: no tunable is named \"x*y\""));
}
