use whimbrel_tcp::Tunables;

use super::*;

#[test]
fn tunable_names_the_cases_that_depend_on_it() {
    assert_eq!(of(Tunables::named("isn.step")[0]), ["illumos-1125ms"]);
    assert_eq!(of(Tunables::named("ack_every")[0]), [""; 0]);
}
