//! `net.ipv4.*` settings of a namespace, by the names that scripts use.

use std::fs;
use std::io;

use whimbrel_script::host::SetError;
use whimbrel_script::shell::system_of;
use whimbrel_tcp::tunables::TUNABLES;

/// Sets `name` in the calling thread's network namespace.
pub(super) fn set(name: &str, value: &str) -> Result<(), SetError> {
    let unknown = || system_of(name).map_or(SetError::Unknown, SetError::Elsewhere);
    let key = key(name).ok_or_else(unknown)?;
    fs::write(format!("/proc/sys/net/ipv4/{key}"), value.trim()).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound => SetError::Unknown,
            _ => SetError::Refused(format!("the kernel refuses net.ipv4.{key} = {value}: {error}")),
        }
    })
}

/// Returns the kernel's name for `name`, without `net.ipv4.`: its own, or that of the tunable with
/// the alias `name`, if their values have the same meaning.
fn key(name: &str) -> Option<&str> {
    let own = name.strip_prefix("net.ipv4.").or(Some(name).filter(|name| name.starts_with("tcp_")));
    let alias = || {
        let info = TUNABLES.iter().find(|info| {
            let mut aliases = info.aliases.iter();
            aliases.any(|it| it.text == name && it.reading == info.name.reading)
        })?;
        info.name.text.strip_prefix("net.ipv4.")
    };
    let plain = |key: &&str| key.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    own.or_else(alias).filter(plain)
}

/// Resets what a new namespace inherits from the machine's administrator to the values that scripts
/// rely on.
pub(super) fn set_defaults() {
    for (name, value) in DEFAULTS {
        // A kernel may lack some of the settings.
        let _ = set(name, value);
    }
}

/// Defaults in their order: of two for the same setting, the last that works prevails.
const DEFAULTS: &[(&str, &str)] = &[
    ("tcp_congestion_control", "reno"),
    ("tcp_congestion_control", "cubic"),
    // Packet scripts set the last number for a window scale of 8.
    ("tcp_rmem", "4096 131072 15728640"),
    ("tcp_wmem", "4096 16384 4194304"),
];

#[cfg(test)]
mod tests;
