use super::*;

const TYPED: Typed<'_> = Typed { option: "URL", example: "give an address" };

fn found(host: &str, over_kernel: bool) -> Result<Vec<(String, u32)>, String> {
    let found = look_up(host, 80, over_kernel, TYPED);
    let shown = |found: Destination| (found.at.to_string(), found.zone);
    match found {
        Ok(found) => Ok(found.into_iter().map(shown).collect()),
        Err(Failure::Usage(text) | Failure::Run(text)) => Err(text),
        Err(_) => Err(String::new()),
    }
}

#[test]
fn address_leads_to_itself() {
    assert_eq!(found("10.9.0.1", true), Ok(vec![("10.9.0.1:80".into(), 0)]));
    assert_eq!(found("fd09::1", false), Ok(vec![("[fd09::1]:80".into(), 0)]));
}

#[test]
fn zone_names_interface_of_machine() {
    // The loopback interface is the first of any network namespace.
    for host in ["fe80::1%lo", "fe80::1%25lo", "fe80::1%1"] {
        assert_eq!(found(host, true), Ok(vec![("[fe80::1]:80".into(), 1)]), "{host}");
    }
    let error = found("fe80::1%nowhere", true).unwrap_err();
    assert!(error.contains("no interface \"nowhere\"") && error.contains("ip link"), "{error}");
    let error = found("fe80::1", true).unwrap_err();
    assert!(error.contains("is link-local"), "{error}");
}

#[test]
fn stack_with_one_link_needs_no_zone() {
    for host in ["fe80::1", "fe80::1%nowhere"] {
        assert_eq!(found(host, false), Ok(vec![("[fe80::1]:80".into(), 0)]), "{host}");
    }
}

#[test]
fn zone_of_another_address_is_refused() {
    for host in ["fd09::1%lo", "10.9.0.1%lo", "name%lo", "fe80::1%"] {
        let error = found(host, true).unwrap_err();
        assert!(error.contains("[fe80::1%eth0]"), "{error}");
    }
}

#[test]
fn hosts_and_ports_are_split_with_brackets_and_without() {
    let cases = [
        ("name", ("name", "")),
        ("name:7", ("name", "7")),
        ("10.9.0.1:7", ("10.9.0.1", "7")),
        ("fd09::1", ("fd09::1", "")),
        ("fe80::1%eth0", ("fe80::1%eth0", "")),
        ("[fd09::1]", ("fd09::1", "")),
        ("[fe80::1%eth0]:7", ("fe80::1%eth0", "7")),
    ];
    for (text, parts) in cases {
        assert_eq!(split(text), Some(parts), "{text}");
    }
    for wrong in ["[fd09::1", "[fd09::1]7"] {
        assert_eq!(split(wrong), None, "{wrong}");
    }
}
