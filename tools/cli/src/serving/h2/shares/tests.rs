use std::net::Ipv4Addr;

use whimbrel_wire::{Address, Endpoint};

use super::*;

#[test]
fn greatest_connection_of_greatest_source_gives_way() {
    let source =
        |last| Source::of(Some(Endpoint::new(Address::from(Ipv4Addr::new(10, 9, 0, last)), 1)));
    let mut shares = Shares::default();
    shares.change(source(1), 1, 0, 100);
    assert_eq!(shares.greatest(), Some(1));
    (2..5).for_each(|place| shares.change(source(2), place, 0, 40));
    shares.change(source(2), 3, 40, 50);
    assert_eq!((shares.held(), shares.greatest()), (230, Some(3)));
    shares.change(source(2), 3, 50, 0);
    assert_eq!((shares.held(), shares.greatest()), (180, Some(1)));
    shares.change(source(1), 1, 100, 0);
    assert_eq!(shares.greatest(), Some(4));
    (2..5).for_each(|place| shares.change(source(2), place, if place == 3 { 0 } else { 40 }, 0));
    assert_eq!((shares.held(), shares.greatest()), (0, None));
    assert!(shares.of_sources.is_empty() && shares.connections.is_empty());
    // A single byte counts, too.
    shares.change(source(3), 9, 0, 1);
    assert_eq!((shares.held(), shares.greatest()), (1, Some(9)));
}
