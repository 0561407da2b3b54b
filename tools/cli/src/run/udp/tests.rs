use std::time::Duration;

use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{Capabilities, Medium, Shard, ShardConfig};
use whimbrel_wire::{Address, Endpoint, Family};

use crate::drive::KernelNet;

use super::{FlowKey, NAME_PATIENCE, PATIENCE, UdpFlows};

fn flows(most: usize) -> UdpFlows<KernelNet> {
    let network = crate::run::network::InsideNetwork::choose(&[]).unwrap();
    let mut shard = Shard::new(ShardConfig {
        tunables: whimbrel_tcp::Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: network.gateway(),
        routes: Vec::new(),
    })
    .unwrap();
    UdpFlows::new(&mut shard, most).unwrap()
}

fn key(port: u16) -> FlowKey {
    let inside = Endpoint::new(Address::from_v4_bytes([10, 0, 2, 100]), port);
    FlowKey { inside, family: Family::V4 }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

impl UdpFlows<KernelNet> {
    fn ports(&self) -> Vec<u16> {
        self.by_inside.keys().map(|key| key.inside.port).collect()
    }
}

#[test]
fn longest_idle_flow_gives_way_at_the_bound() {
    let (mut flows, mut net) = (flows(3), KernelNet::new().unwrap());
    for (port, seconds) in [(1, 0), (2, 1), (3, 2), (1, 3), (4, 4)] {
        flows.flow_of(&mut net, key(port), PATIENCE, at(seconds)).unwrap();
    }
    assert_eq!(flows.ports(), [1, 3, 4]);
    assert_eq!((flows.statistics().flows, flows.statistics().displaced), (4, 1));
    assert_eq!((flows.flows.len(), flows.by_last.len(), flows.by_expiry.len()), (3, 3, 3));
}

#[test]
fn idle_flows_end_after_300_s_and_those_for_names_after_10() {
    let (mut flows, mut net) = (flows(3), KernelNet::new().unwrap());
    flows.flow_of(&mut net, key(1), PATIENCE, at(0)).unwrap();
    flows.flow_of(&mut net, key(2), NAME_PATIENCE, at(0)).unwrap();
    // Who asked more than names is kept as others are.
    flows.flow_of(&mut net, key(3), NAME_PATIENCE, at(0)).unwrap();
    flows.flow_of(&mut net, key(3), PATIENCE, at(1)).unwrap();
    flows.flow_of(&mut net, key(3), NAME_PATIENCE, at(2)).unwrap();
    assert_eq!(flows.next_deadline(), Some(at(10)));
    flows.expire(&mut net, at(10));
    assert_eq!(flows.ports(), [1, 3]);
    flows.expire(&mut net, at(300));
    assert_eq!(flows.ports(), [3]);
    flows.expire(&mut net, at(302));
    assert_eq!(flows.ports(), [0_u16; 0]);
    assert_eq!((flows.flows.len(), flows.by_last.len(), flows.by_expiry.len()), (0, 0, 0));
}
