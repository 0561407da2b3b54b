//! The values that a host shows in every connection: initial sequence numbers and timestamps.
//!
//! Both are clocks behind a keyed offset. An observer of the numbers of one flow learns nothing of
//! another's (RFC 6528 2, RFC 7323 5.4), yet for one flow they only grow, which is what lets a
//! new connection of the same ports be told from the old one's duplicates.

use core::num::NonZeroU64;

use whimbrel_base::{Instant, PairHasher, Secrets, SipHasher24, Tick};
use whimbrel_wire::{Address, Flow, SeqNum};

use crate::Tunables;
use crate::tunables::Isn;

/// Chooses initial sequence numbers and timestamp offsets. Equal secrets give equal offsets.
#[derive(Clone)]
pub struct Identity {
    isn: SipHasher24,
    timestamps: PairHasher,
    policy: Isn,
    isn_tick_nanos: NonZeroU64,
    isn_step: u32,
    /// The number of numbers were chosen, for those that depend on it.
    chosen: u64,
}

impl Identity {
    /// The identity of a stack with these keys and rules. An ISN clock of 0 ns counts as one of 1.
    pub fn new(secrets: &Secrets, tunables: &Tunables) -> Self {
        Self {
            isn: secrets.isn.prf(),
            timestamps: PairHasher::new(&secrets.timestamps),
            policy: tunables.isn,
            isn_tick_nanos: NonZeroU64::new(tunables.isn_tick_nanos.into())
                .unwrap_or(NonZeroU64::MIN),
            isn_step: tunables.isn_step,
            chosen: 0,
        }
    }

    /// The initial sequence number of a connection that begins `now`.
    ///
    /// The clock starts with the shard, not with an epoch: after a restart the keys differ too,
    /// and a peer that still holds an old connection is brought round by its challenge ACK.
    #[inline]
    pub fn isn(&mut self, flow: &Flow, now: Instant) -> SeqNum {
        match self.policy {
            Isn::Rfc6528 => {
                // RFC 6528 3: "ISN = M + F(localip, localport, remoteip, remoteport, secretkey)"
                let offset = hash_flow(&self.isn, flow) as u32;
                SeqNum::new(offset) + (now.as_nanos() / self.isn_tick_nanos) as u32
            }
            Isn::HostWide => {
                let clock = (now.as_nanos() / HOST_WIDE_TICK_NANOS) as u32;
                let random =
                    1 + self.isn.hash(&self.chosen.to_be_bytes()) as u32 % HOST_WIDE_RANDOM;
                self.next_host_wide() + clock + random
            }
            Isn::HostWidePlain => {
                let seconds = (now.as_nanos() / 1_000_000_000) as u32;
                self.next_host_wide() + seconds.wrapping_mul(self.isn_step.wrapping_mul(2))
            }
        }
    }

    /// One counter for all flows, from a secret start.
    fn next_host_wide(&mut self) -> SeqNum {
        self.chosen += 1;
        let start = self.isn.hash(&[]) as u32;
        SeqNum::new(start) + (self.chosen as u32).wrapping_mul(self.isn_step)
    }

    /// The offset of the timestamp clock towards one peer: milliseconds modulo 2^32.
    ///
    /// It depends on the two addresses and not on the ports, so that a later connection between
    /// the same hosts never shows an earlier TSval: a TIME-WAIT record of either side accepts it
    /// at once (RFC 6191 2).
    #[inline]
    pub fn timestamp_offset(&self, local: &Address, remote: &Address) -> u32 {
        self.timestamps.hash(local, remote) as u32
    }

    /// TSval `now`, towards a peer with this [`Identity::timestamp_offset`].
    ///
    /// The clock ticks once a millisecond: RFC 7323 5.4 asks for "1 ms to 1 sec per tick", and at
    /// 1 ms its sign bit turns after 24.8 days.
    #[inline]
    pub const fn tsval(now: Tick, offset: u32) -> u32 {
        now.raw().wrapping_add(offset)
    }
}

/// Says that there are keys, and nothing of what they are.
impl core::fmt::Debug for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Identity").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The hash of a 4-tuple: the addresses, this host's first, and the ports. Bytes that all IPv4
/// addresses share are left out, which is half of the work; the length tells the families apart.
fn hash_flow(prf: &SipHasher24, flow: &Flow) -> u64 {
    let (local, remote) = (&flow.local.addr, &flow.remote.addr);
    let ports = (u32::from(flow.local.port) << 16 | u32::from(flow.remote.port)).to_le_bytes();
    if local.is_v4() {
        // Together, so that they are not put together from bytes.
        let [local, remote] =
            [local, remote].map(|it| u64::from(u32::from_le_bytes(it.v4_bytes())));
        let mut bytes = [0; 12];
        let (addresses, end) = bytes.split_at_mut(8);
        addresses.copy_from_slice(&(remote << 32 | local).to_le_bytes());
        end.copy_from_slice(&ports);
        return prf.hash(&bytes);
    }
    let mut bytes = [0; 36];
    let (addresses, end) = bytes.split_at_mut(32);
    addresses.as_chunks_mut().0.copy_from_slice(&[*local.as_bytes(), *remote.as_bytes()]);
    end.copy_from_slice(&ports);
    prf.hash(&bytes)
}

/// The clock of host-wide numbers: 4.096 us, so 244,141 a second.
const HOST_WIDE_TICK_NANOS: u64 = 4_096;
/// The most by which one host-wide number exceeds the counter.
const HOST_WIDE_RANDOM: u32 = 131_072;

#[cfg(test)]
mod tests;
