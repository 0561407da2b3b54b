use whimbrel_io::{Stop, Waker};
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::table::Secrets;
use whimbrel_wire::Address;

use super::*;

#[test]
fn a_worker_that_is_about_to_sleep_sees_that_nobody_holds_the_stack_any_more() {
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: vec![InterfaceAddress {
            addr: Address::from(std::net::Ipv4Addr::new(10, 0, 0, 1)),
            prefix_len: 24,
        }],
        routes: Vec::new(),
    };
    let mut shard = Shard::new(config).unwrap();
    let mailbox = Arc::new(Mailbox::new(Waker::new().unwrap()));
    let ending = Arc::new(Ending::new(Stop::new().unwrap(), 1));
    let mut face = Face::new(Arc::clone(&mailbox), Arc::clone(&ending));
    let now = Instant::ZERO;
    assert_eq!(face.drain(now, &mut shard), Activity::Idle);
    assert_eq!(face.flush(now, &mut shard), Activity::Idle);

    // Between its last look at everything and its announcement that it sleeps.
    mailbox.close();
    assert_eq!(face.drain(now, &mut shard), Activity::Busy);
    let _ = face.flush(now, &mut shard);
    assert!(ending.stop().is_set());
    assert_eq!(face.drain(now, &mut shard), Activity::Idle, "seen once");
}
