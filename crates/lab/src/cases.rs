//! The cases, a file for each.

use super::Case;

mod fddi_70ms;
mod freebsd_qps;
mod illumos_1125ms;
mod macos_16k;
mod unikraft_nginx;

/// Every case, in the order in which they are told.
pub const CASES: [&Case; 5] = [
    &unikraft_nginx::CASE,
    &illumos_1125ms::CASE,
    &macos_16k::CASE,
    &fddi_70ms::CASE,
    &freebsd_qps::CASE,
];

/// Tunables that say how long TIME-WAIT lasts.
const MSL: &[&str] = &["msl_remote", "msl_link", "msl_loopback"];
/// Tunables that say which ports a client draws, and in which order.
const PORTS: &[&str] = &["port_order", "refused_ports", "port_first", "port_last"];
