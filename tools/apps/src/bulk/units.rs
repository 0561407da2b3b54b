//! Figures as iperf3 prints them: three digits and a unit.

use alloc::format;
use alloc::string::String;

/// Bytes, in powers of 1,024.
pub fn transfer(bytes: u64) -> String {
    three(bytes as f64, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"])
}

/// Bits a second, in powers of 1,000.
pub fn bitrate(bits: f64) -> String {
    three(bits, 1000.0, ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"])
}

fn three(mut value: f64, step: f64, units: [&str; 5]) -> String {
    let mut units = units.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while value >= step {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = next;
    }
    match value {
        _ if value < 9.995 => format!("{value:.2} {unit}"),
        _ if value < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}
