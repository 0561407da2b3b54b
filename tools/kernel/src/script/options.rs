//! Socket options in C's form: numbers, names and structures of bytes.

use std::io;

use whimbrel_posix::{Linger, OptionValue, SocketOption, TcpInfo};

use super::descriptors::Descriptor;
use crate::option;

/// Returns the value of an option, as getsockopt(2) does.
pub(super) fn read(descriptor: &Descriptor, option: SocketOption) -> io::Result<OptionValue> {
    Ok(match option {
        SocketOption::Info => OptionValue::Info(Box::new(tcp_info(descriptor)?)),
        SocketOption::Linger => {
            let bytes = option::get(descriptor, option)?;
            let seconds = number_at(&bytes, 4).cast_unsigned();
            let on = number_at(&bytes, 0) != 0;
            OptionValue::Linger(if on { Linger::Seconds(seconds) } else { Linger::Off })
        }
        SocketOption::Congestion => {
            let mut bytes = option::get(descriptor, option)?;
            bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
            OptionValue::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        SocketOption::FastOpenKey => OptionValue::Bytes(option::get(descriptor, option)?),
        _ => OptionValue::Int(number_at(&option::get(descriptor, option)?, 0)),
    })
}

/// Sets an option, as setsockopt(2) does.
pub(super) fn write(
    descriptor: &Descriptor,
    option: SocketOption,
    value: &OptionValue,
) -> io::Result<()> {
    let bytes = match value {
        OptionValue::Int(number) => number.to_ne_bytes().to_vec(),
        OptionValue::Linger(Linger::Off) => vec![0; 8],
        OptionValue::Linger(Linger::Seconds(seconds)) => {
            [1i32.to_ne_bytes(), seconds.to_ne_bytes()].concat()
        }
        OptionValue::Text(text) => text.clone().into_bytes(),
        OptionValue::Bytes(bytes) => bytes.clone(),
        // TCP_INFO cannot be set.
        OptionValue::Info(_) => return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT)),
    };
    option::set(descriptor, option, &bytes)
}

/// True if closing it may block.
pub(super) fn lingers(descriptor: &Descriptor) -> bool {
    matches!(read(descriptor, SocketOption::Linger), Ok(OptionValue::Linger(Linger::Seconds(1..))))
}

/// Returns `TCP_INFO`. Fields that an older kernel lacks are 0.
pub(super) fn tcp_info(descriptor: &Descriptor) -> io::Result<TcpInfo> {
    let bytes = option::get(descriptor, SocketOption::Info)?;
    Ok(TcpInfo::by_field(|name| field(&bytes, name)))
}

/// Returns the `int` at `at`; a shorter value is zero-extended.
fn number_at(bytes: &[u8], at: usize) -> i32 {
    let mut number = [0; 4];
    for (place, byte) in number.iter_mut().zip(bytes.get(at..).unwrap_or_default()) {
        *place = *byte;
    }
    i32::from_ne_bytes(number)
}

fn field(info: &[u8], name: &str) -> u64 {
    let Some(&(_, at, shape)) = FIELDS.iter().find(|(known, ..)| *known == name) else { return 0 };
    let byte = || u64::from(info.get(at).copied().unwrap_or(0));
    match shape {
        Shape::Byte => byte(),
        Shape::LowBits => byte() & 15,
        Shape::HighBits => byte() >> 4,
        Shape::Half => {
            let bytes = info.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes).into())
        }
        Shape::Word => number_at(info, at).cast_unsigned().into(),
        Shape::Long => {
            let bytes = info.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        }
    }
}

/// Form of a field of `struct tcp_info`.
#[derive(Clone, Copy)]
enum Shape {
    Byte,
    LowBits,
    HighBits,
    Half,
    Word,
    Long,
}

/// Name, offset and form of each field (linux/tcp.h). The kernel only ever adds to the end.
const FIELDS: &[(&str, usize, Shape)] = &[
    ("tcpi_state", 0, Shape::Byte),
    ("tcpi_ca_state", 1, Shape::Byte),
    ("tcpi_retransmits", 2, Shape::Byte),
    ("tcpi_probes", 3, Shape::Byte),
    ("tcpi_backoff", 4, Shape::Byte),
    ("tcpi_options", 5, Shape::Byte),
    ("tcpi_snd_wscale", 6, Shape::LowBits),
    ("tcpi_rcv_wscale", 6, Shape::HighBits),
    ("tcpi_rto", 8, Shape::Word),
    ("tcpi_ato", 12, Shape::Word),
    ("tcpi_snd_mss", 16, Shape::Word),
    ("tcpi_rcv_mss", 20, Shape::Word),
    ("tcpi_unacked", 24, Shape::Word),
    ("tcpi_sacked", 28, Shape::Word),
    ("tcpi_lost", 32, Shape::Word),
    ("tcpi_retrans", 36, Shape::Word),
    ("tcpi_fackets", 40, Shape::Word),
    ("tcpi_last_data_sent", 44, Shape::Word),
    ("tcpi_last_ack_sent", 48, Shape::Word),
    ("tcpi_last_data_recv", 52, Shape::Word),
    ("tcpi_last_ack_recv", 56, Shape::Word),
    ("tcpi_pmtu", 60, Shape::Word),
    ("tcpi_rcv_ssthresh", 64, Shape::Word),
    ("tcpi_rtt", 68, Shape::Word),
    ("tcpi_rttvar", 72, Shape::Word),
    ("tcpi_snd_ssthresh", 76, Shape::Word),
    ("tcpi_snd_cwnd", 80, Shape::Word),
    ("tcpi_advmss", 84, Shape::Word),
    ("tcpi_reordering", 88, Shape::Word),
    ("tcpi_rcv_rtt", 92, Shape::Word),
    ("tcpi_rcv_space", 96, Shape::Word),
    ("tcpi_total_retrans", 100, Shape::Word),
    ("tcpi_pacing_rate", 104, Shape::Long),
    ("tcpi_max_pacing_rate", 112, Shape::Long),
    ("tcpi_bytes_acked", 120, Shape::Long),
    ("tcpi_bytes_received", 128, Shape::Long),
    ("tcpi_segs_out", 136, Shape::Word),
    ("tcpi_segs_in", 140, Shape::Word),
    ("tcpi_notsent_bytes", 144, Shape::Word),
    ("tcpi_min_rtt", 148, Shape::Word),
    ("tcpi_data_segs_in", 152, Shape::Word),
    ("tcpi_data_segs_out", 156, Shape::Word),
    ("tcpi_delivery_rate", 160, Shape::Long),
    ("tcpi_busy_time", 168, Shape::Long),
    ("tcpi_rwnd_limited", 176, Shape::Long),
    ("tcpi_sndbuf_limited", 184, Shape::Long),
    ("tcpi_delivered", 192, Shape::Word),
    ("tcpi_delivered_ce", 196, Shape::Word),
    ("tcpi_bytes_sent", 200, Shape::Long),
    ("tcpi_bytes_retrans", 208, Shape::Long),
    ("tcpi_dsack_dups", 216, Shape::Word),
    ("tcpi_reord_seen", 220, Shape::Word),
    ("tcpi_rcv_ooopack", 224, Shape::Word),
    ("tcpi_snd_wnd", 228, Shape::Word),
    ("tcpi_rcv_wnd", 232, Shape::Word),
    ("tcpi_rehash", 236, Shape::Word),
    ("tcpi_total_rto", 240, Shape::Half),
    ("tcpi_total_rto_recoveries", 242, Shape::Half),
    ("tcpi_total_rto_time", 244, Shape::Word),
];

#[cfg(test)]
mod tests;
