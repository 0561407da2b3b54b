//! Options of a socket of datagrams.

use whimbrel_stack::Shard;
use whimbrel_udp::Fragmenting;
use whimbrel_wire::TrafficClass;

use super::Datagrams;
use crate::{Domain, Errno, OptionValue, Protocol, SocketOption, SocketType};

impl Datagrams {
    pub(crate) fn getsockopt(
        &self,
        shard: &mut Shard,
        option: SocketOption,
    ) -> Result<OptionValue, Errno> {
        if option == SocketOption::Error {
            let error = self.take_error(shard);
            return Ok(OptionValue::Int(error.map_or(0, Errno::number)));
        }
        let usual = shard.tunables().hop_limit;
        let (packets, v6) = (&self.packets, self.domain == Domain::Inet6);
        let size = |asked: Option<u32>| counted(asked.unwrap_or(USUAL_BUFFER)) as i32;
        let value = match option {
            SocketOption::Type => SocketType::Dgram.number(),
            SocketOption::ProtocolOf => Protocol::Udp.number(),
            SocketOption::DomainOf => self.domain.number(),
            SocketOption::AcceptConn => 0,
            SocketOption::ReuseAddr => self.reuse_addr.into(),
            SocketOption::RecvBuffer => size(self.recv_size),
            SocketOption::SendBuffer => size(self.send_size),
            SocketOption::V6Only if v6 => self.v6_only.into(),
            SocketOption::Ttl => packets.ttl.unwrap_or(usual).into(),
            SocketOption::Tos => packets.tos.0.into(),
            SocketOption::UnicastHops if v6 => packets.hop_limit.unwrap_or(usual).into(),
            SocketOption::TrafficClass if v6 => packets.class.0.into(),
            SocketOption::MtuDiscover => match packets.fragmenting {
                Fragmenting::Allowed => PMTUDISC_WANT,
                Fragmenting::Refused => PMTUDISC_DO,
            },
            SocketOption::Segment => packets.segment.into(),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(OptionValue::Int(value))
    }

    pub(crate) fn setsockopt(
        &mut self,
        shard: &mut Shard,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let value = value.as_int().ok_or(Errno::EINVAL)?;
        let v6 = self.domain == Domain::Inet6;
        match option {
            SocketOption::ReuseAddr => self.reuse_addr = value != 0,
            SocketOption::V6Only if v6 && self.handle.is_some() => return Err(Errno::EINVAL),
            SocketOption::V6Only if v6 => self.v6_only = value != 0,
            SocketOption::RecvBuffer => {
                self.recv_size = Some(value.cast_unsigned());
                if let Some(handle) = self.handle {
                    shard.udp_set_recv_size(handle, counted(value.cast_unsigned()));
                }
            }
            SocketOption::SendBuffer => {
                self.send_size = Some(value.cast_unsigned());
                if let Some(handle) = self.handle {
                    shard.udp_set_send_size(handle, counted(value.cast_unsigned()));
                }
            }
            SocketOption::Ttl => self.packets.ttl = hops(value)?,
            SocketOption::UnicastHops if v6 => self.packets.hop_limit = hops(value)?,
            SocketOption::Tos => self.packets.tos = TrafficClass(value as u8),
            SocketOption::TrafficClass if v6 => {
                let class = u8::try_from(value.max(0)).map_err(|_| Errno::EINVAL)?;
                self.packets.class = TrafficClass(class);
            }
            SocketOption::Segment => {
                self.packets.segment = u16::try_from(value).map_err(|_| Errno::EINVAL)?;
            }
            SocketOption::MtuDiscover => {
                self.packets.fragmenting = match value {
                    PMTUDISC_WANT => Fragmenting::Allowed,
                    PMTUDISC_DO => Fragmenting::Refused,
                    _ => return Err(Errno::EINVAL),
                };
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }
}

fn hops(value: i32) -> Result<Option<u8>, Errno> {
    match value {
        // As in Linux: -1 restores the default.
        -1 => Ok(None),
        1..=255 => Ok(Some(value as u8)),
        _ => Err(Errno::EINVAL),
    }
}

/// Buffer size for a requested one: twice as much, as on Linux, because each datagram's overhead
/// counts too.
pub(super) const fn counted(asked: u32) -> usize {
    asked.saturating_mul(2) as usize
}

/// Linux' `net.core.rmem_default`, of which half counts as bytes.
const USUAL_BUFFER: u32 = 212_992 / 2;
/// `IP_PMTUDISC_WANT`: datagrams larger than the path's MTU leave in fragments.
const PMTUDISC_WANT: i32 = 1;
/// `IP_PMTUDISC_DO`: they are refused.
const PMTUDISC_DO: i32 = 2;
