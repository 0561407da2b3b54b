use whimbrel_tcp::Tunables;

use super::*;

#[test]
fn every_field_that_decides_a_case_is_one_and_stands_there_once() {
    for (case, groups) in CASES {
        let fields = groups.concat();
        for (at, field) in fields.iter().enumerate() {
            assert_eq!(Tunables::named(field).len(), 1, "{case}: {field}");
            assert!(!fields[..at].contains(field), "{case}: {field} twice");
        }
    }
    assert_eq!(of(Tunables::named("isn.step")[0]), ["illumos-1125ms"]);
    assert_eq!(of(Tunables::named("ack_every")[0]), [""; 0]);
}
