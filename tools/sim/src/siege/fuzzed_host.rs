//! The host under siege: its device, addresses, routes and rules, and its neighbours.

use std::net::Ipv6Addr;

use whimbrel_base::Secrets;
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, PROFILES, Route, Shard, ShardConfig, Steering,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint, Family, MacAddress};

use super::rules;
use super::script::Script;

/// The host, and the besieger's knowledge of it.
pub(super) struct FuzzedHost {
    pub(super) shard: Shard,
    pub(super) ethernet: bool,
    pub(super) mtu: u16,
    /// True if it sends super-segments and takes merged ones.
    pub(super) offload: bool,
    pub(super) families: &'static [Family],
}

/// MAC addresses of the host, and of all others.
pub(super) const OUR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub(super) const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// Ports that the host usually listens on.
pub(super) const PORTS: [u16; 3] = [80, 81, 82];

impl FuzzedHost {
    /// Reads the host's configuration from the beginning of a script; `None` if it is not valid.
    pub(super) fn draw(script: &mut Script<'_>) -> Option<Self> {
        let ethernet = script.rarely(4);
        let mtu = script.one_of(&[1_500, 1_500, 1_280, 576, 9_000, 128, 65_535]);
        let offload = script.rarely(3);
        let mut tunables: Tunables = PROFILES[script.below(PROFILES.len())].tunables().ok()?;
        for _ in 0..script.below(6) {
            let (name, value) = rules::draw(script);
            // A value out of range, or in contradiction to others, is skipped.
            let mut changed = tunables.clone();
            if changed.set_by_name(name, &value).is_ok() && changed.validate().is_ok() {
                tunables = changed;
            }
        }
        let families: &[Family] =
            if mtu < 1_280 { &[Family::V4] } else { &[Family::V4, Family::V6] };
        let medium = if ethernet { Medium::Ethernet { mac: OUR_MAC } } else { Medium::Ip };
        let capabilities = Capabilities::plain(medium, mtu).with_steering(match script.rarely(8) {
            true => Steering::Computable { queue: 0, queues: 2 },
            false => Steering::None,
        });
        let shard = Shard::new(ShardConfig {
            tunables,
            secrets: Secrets::from_seed(1),
            capabilities: match offload {
                true => capabilities.with_segmentation(65_535).with_udp_segmentation(),
                false => capabilities,
            },
            addresses: families.iter().flat_map(|family| own_addresses(*family)).collect(),
            routes: families.iter().flat_map(|family| routes(*family)).collect(),
        });
        Some(Self { shard: shard.ok()?, ethernet, mtu, offload, families })
    }
}

pub(super) fn v6(network: u16, host: u16) -> Address {
    Address::from(Ipv6Addr::new(network, 0, 0, 0, 0, 0, 0, host))
}

pub(super) fn unspecified(family: Family) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([0; 4]),
        Family::V6 => Address::from(Ipv6Addr::UNSPECIFIED),
    }
}

/// One of the host's two addresses of a family.
pub(super) fn ours(family: Family, which: u8) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([10, 0, 0, 2 + which % 2]),
        Family::V6 => v6(0xfd00, 2 + u16::from(which % 2)),
    }
}

/// Another host: on the link, beyond the first router, or beyond the second, of lower metric.
pub(super) fn peer(family: Family, which: u8) -> Address {
    match (family, which % 3) {
        (Family::V4, 0) => Address::from_v4_bytes([10, 0, 0, 1]),
        (Family::V4, 1) => Address::from_v4_bytes([198, 51, 100, 7]),
        (Family::V4, _) => Address::from_v4_bytes([203, 0, 113, 9]),
        (Family::V6, 0) => v6(0xfd00, 1),
        (Family::V6, 1) => v6(0x2001, 7),
        (Family::V6, _) => v6(0x2002, 9),
    }
}

/// The router of a family with this number.
pub(super) fn router(family: Family, which: u8) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([10, 0, 0, 254 - which % 2]),
        Family::V6 => v6(0xfd00, 0xfe - u16::from(which % 2)),
    }
}

/// An endpoint of a peer.
pub(super) fn peer_end(family: Family, which: u8, port: u16) -> Endpoint {
    Endpoint::new(peer(family, which), port)
}

fn own_addresses(family: Family) -> [InterfaceAddress; 2] {
    let prefix_len = if family == Family::V4 { 24 } else { 64 };
    [0, 1].map(|which| InterfaceAddress { addr: ours(family, which), prefix_len })
}

fn routes(family: Family) -> [Route; 2] {
    let by = |which| Route::default_via(router(family, which).to_ip());
    [0, 1].map(|which| by(which).with_metric(u32::from(which)))
}
