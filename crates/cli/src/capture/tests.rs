use super::*;

#[test]
fn a_file_may_have_a_bound_of_octets() {
    let plan = |path: &str, snap| Ok(CapturePlan { path: path.into(), snap });
    assert_eq!(parse("a.pcapng"), plan("a.pcapng", WHOLE));
    assert_eq!(parse("a,b.pcapng,snap=128"), plan("a,b.pcapng", 128));
}

#[test]
fn what_means_nothing_is_refused() {
    for (typed, says) in [("", "a file"), (",snap=9", "a file"), ("a,snap=0", "1 to 262144")] {
        let error = parse(typed).unwrap_err();
        assert!(error.contains(says), "{typed}: {error}");
    }
}

#[test]
fn the_kernels_sockets_are_not_captured() {
    let option = CaptureOption { pcap: Some(parse("a").unwrap()) };
    assert!(option.pcap(&WireSpec::Kernel).is_err());
}
