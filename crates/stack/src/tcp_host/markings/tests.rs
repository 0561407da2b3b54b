use whimbrel_wire::TrafficClass;

use super::*;

#[test]
fn each_marking_has_a_number_until_none_is_left() {
    let mut markings = Markings::default();
    let ip = |hop_limit| Marking { hop_limit, class: TrafficClass(0x28) };
    let marking = |hop_limit| WaitMarking { ip: ip(hop_limit), ace: None };
    assert_eq!(markings.get(Markings::USUAL), None);
    for hop_limit in 1..=255 {
        assert_eq!(markings.number(marking(hop_limit)), hop_limit);
    }
    assert_eq!((markings.number(marking(7)), markings.get(7)), (7, Some(marking(7))));
    let one_more = WaitMarking { ip: ip(1), ace: Some(0) };
    assert_eq!(markings.number(one_more), Markings::USUAL);
}
