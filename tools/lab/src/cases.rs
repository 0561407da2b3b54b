//! The cases, a file for each.

use super::Case;

mod fddi_70ms;
mod freebsd_qps;
mod illumos_1125ms;
mod macos_16k;
mod unikraft_nginx;

/// Every case, in order of the list.
pub const CASES: [&Case; 5] = [
    &unikraft_nginx::CASE,
    &illumos_1125ms::CASE,
    &macos_16k::CASE,
    &fddi_70ms::CASE,
    &freebsd_qps::CASE,
];

/// Tunables for the length of TIME-WAIT.
const MSL: &[&str] = &["msl_remote", "msl_link", "msl_loopback"];
/// Tunables for a client's ports and their order.
const PORTS: &[&str] = &["port_order", "refused_ports", "port_first", "port_last"];
