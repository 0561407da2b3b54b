//! One end of a bridge: `tun:NAME[,netns=NAMESPACE][,addr=ADDRESS/PREFIX]`.
//!
//! ```
//! use whimbrel_kernel::BridgeEnd;
//!
//! let end: BridgeEnd = "tun:left,netns=client,addr=10.1.0.1/24".parse().unwrap();
//! assert_eq!(end.name(), "left");
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use whimbrel_io::config::ConfigError;
use whimbrel_io::process::Namespace;
use whimbrel_io::spec::interface_address;
use whimbrel_io::text;
use whimbrel_io::tun::{Offload, Tun, TunConfig};
use whimbrel_stack::InterfaceAddress;

use super::BridgeError;

/// A TUN interface, and the network namespace that it is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BridgeEnd {
    name: String,
    /// Namespace; `None` is that of the process.
    namespace: Option<PathBuf>,
    /// Addresses that the machine gets on it.
    addresses: Vec<InterfaceAddress>,
}

/// Reason why a text is no end of a bridge.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndError {
    /// The kind of wire is not `tun`.
    #[error("{0:?} is no TUN interface: give tun:NAME[,netns=NAMESPACE][,addr=ADDRESS/PREFIX]")]
    Kind(String),
    /// The option after the name is invalid.
    #[error(
        "{0:?}: give netns=NAMESPACE, as in netns=client, or addr=ADDRESS/PREFIX, as in addr=10.1.0.1/24"
    )]
    Key(String),
    /// The values are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl FromStr for BridgeEnd {
    type Err = EndError;

    fn from_str(text: &str) -> Result<Self, EndError> {
        let rest = text.strip_prefix("tun:").ok_or_else(|| EndError::Kind(text.into()))?;
        let mut parts = rest.split(',');
        let name = parts.next().unwrap_or_default().to_owned();
        let mut end = Self { name, namespace: None, addresses: Vec::new() };
        for part in parts {
            let refuse = || EndError::Key(part.into());
            match part.split_once('=') {
                Some(("netns", path)) if !path.is_empty() && end.namespace.is_none() => {
                    // ip(8) treats a name as a file of this folder.
                    end.namespace = Some(Path::new("/run/netns").join(path));
                }
                Some(("addr", value)) => {
                    end.addresses.push(interface_address(value).ok_or_else(refuse)?);
                }
                _ => return Err(refuse()),
            }
        }
        end.config(TunConfig::DEFAULT_MTU)?;
        Ok(end)
    }
}

impl BridgeEnd {
    /// Returns the name of the interface in its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the interface in its namespace, or attaches to it.
    pub(super) fn open(&self, mtu: u16) -> Result<Tun, BridgeError> {
        let config = self.config(mtu)?;
        Ok(self.within(|| Tun::open(&config))??)
    }

    /// Returns how many packets the interface dropped because they were not read in time.
    pub(super) fn dropped(&self) -> Option<u64> {
        let text = self.within(|| fs::read_to_string("/proc/thread-self/net/dev")).ok()?.ok()?;
        dropped_in(&text, &self.name)
    }

    pub(super) fn lost(&self, error: io::Error) -> BridgeError {
        BridgeError::Lost { name: self.name.clone(), error }
    }

    /// Returns the configuration of the interface. Offloads are off, so that a link loses single
    /// packets and not bursts of them.
    fn config(&self, mtu: u16) -> Result<TunConfig, ConfigError> {
        let config = TunConfig::bare(&self.name, self.addresses.clone())?;
        Ok(config.with_mtu(mtu)?.with_offload(Offload::Off))
    }

    /// Runs `work` in the end's namespace.
    fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, BridgeError> {
        let Some(path) = &self.namespace else { return Ok(work()) };
        let entered = Namespace::open(path).and_then(|namespace| namespace.within(work));
        entered
            .map_err(|error| BridgeError::Namespace { path: text::path(path).to_string(), error })
    }
}

/// Returns how many packets the interface `name` dropped instead of sending, from the lines of
/// `/proc/net/dev`.
fn dropped_in(lines: &str, name: &str) -> Option<u64> {
    let figures = lines.lines().find_map(|line| {
        line.split_once(':').filter(|(first, _)| first.trim() == name).map(|(_, rest)| rest)
    })?;
    // Eight counters of reception, then bytes, packets, errors and drops of transmission.
    figures.split_ascii_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests;
