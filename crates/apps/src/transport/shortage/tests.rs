use alloc::string::ToString;

use super::*;

#[test]
fn it_says_what_is_known_and_no_more() {
    let all = PortShortage {
        first: 50_000,
        last: 50_003,
        in_use: Some(1),
        waiting: Some(3),
        next: Some(Duration::from_millis(1_250)),
    };
    let text = "ports 50000 to 50003: 1 in use, 3 in TIME-WAIT, the next comes free in 1.2 s";
    assert_eq!(all.to_string(), text);
    let soon = PortShortage { in_use: None, next: Some(Duration::from_millis(7)), ..all };
    let text = "ports 50000 to 50003: 3 in TIME-WAIT, the next comes free in 7 ms";
    assert_eq!(soon.to_string(), text);
    let nothing = PortShortage { in_use: None, waiting: None, next: None, ..all };
    assert_eq!(nothing.to_string(), "ports 50000 to 50003");
}
