//! Name servers: the machine's, as resolv.conf(5) has them, and the file that the program sees instead.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use whimbrel_wire::{Address, Endpoint};

use super::network::{DNS_PORT, InsideNetwork};

/// The machine's name servers, and what else its file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Resolver {
    /// At least one, unless loopback addresses were left out.
    pub(super) servers: Vec<Endpoint>,
    /// Lines that stay as they are.
    rest: String,
}

impl Resolver {
    /// Reads the machine's file. Without a name server in it, it is this machine (resolv.conf(5)).
    pub(super) fn of_machine() -> Self {
        Self::parse(&fs::read_to_string(FILE).unwrap_or_default())
    }

    /// Reads the name servers that a wire may reach: not those at the machine's loopback addresses, behind
    /// which systemd-resolved's own file names others. There may be none.
    pub(super) fn beyond_machine() -> Self {
        let read = |file: &str| Self::parse(&fs::read_to_string(file).unwrap_or_default());
        let [machine, behind] = [FILE, BEHIND_RESOLVED].map(|file| read(file).beyond_loopback());
        if machine.servers.is_empty() {
            Self { servers: behind.servers, ..machine }
        } else {
            machine
        }
    }

    fn beyond_loopback(mut self) -> Self {
        self.servers.retain(|server| !server.addr.to_ip().is_loopback());
        self
    }

    fn parse(text: &str) -> Self {
        let (mut servers, mut rest) = (Vec::new(), String::new());
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("nameserver"), Some(address)) if servers.len() < MOST_SERVERS => {
                    // A zone names an interface of the machine, which a plain address cannot.
                    if let Ok(address) = address.parse::<IpAddr>() {
                        servers.push(Endpoint::new(Address::from(address), DNS_PORT));
                    }
                }
                (Some("search" | "domain" | "options"), _) => rest += &format!("{line}\n"),
                _ => {}
            }
        }
        if servers.is_empty() {
            servers.push(Endpoint::new(Address::from_v4_bytes([127, 0, 0, 1]), DNS_PORT));
        }
        Self { servers, rest }
    }

    /// Text of the file for the program, which names the gateway.
    fn text(&self, network: InsideNetwork) -> String {
        format!("nameserver {}\n{}", network.name_server(), self.rest)
    }

    /// Puts that file in place of the machine's, in this mount namespace, and hides the sockets by which
    /// names would be looked up past it. Returns false if the machine has no such file.
    pub(super) fn install(&self, network: InsideNetwork) -> io::Result<bool> {
        // What it leads to: systemd's, resolvconf's and others' are links.
        let target = fs::canonicalize(FILE).ok();
        for hidden in HIDDEN {
            let Ok(folder) = fs::canonicalize(hidden) else { continue };
            if !folder.is_dir() {
                continue;
            }
            hide(&folder)?;
            // An empty folder would hide our file, too.
            if let Some(inside) = target.as_ref().filter(|target| target.starts_with(&folder)) {
                if let Some(parent) = inside.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(inside, self.text(network))?;
                return Ok(true);
            }
        }
        let Some(target) = target else { return Ok(false) };
        self.bind_over(&target, network)?;
        Ok(true)
    }

    /// Mounts the file over another. It lies in a file system of its own, which then has no other place.
    fn bind_over(&self, target: &Path, network: InsideNetwork) -> io::Result<()> {
        // Open before anything hides it.
        let place = openat(CWD, target, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let folder = FOLDERS.iter().map(Path::new).find(|folder| folder.is_dir());
        let folder = folder.ok_or(io::ErrorKind::NotFound)?;
        hide(folder)?;
        let file = folder.join("resolv.conf");
        fs::write(&file, self.text(network))?;
        let place =
            PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&place)));
        let bound = mount_bind(&file, &place);
        unmount(folder, UnmountFlags::DETACH)?;
        Ok(bound?)
    }
}

/// Hides a folder behind an empty one.
fn hide(folder: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("tmpfs", folder, "tmpfs", flags, Some(c"mode=755"))?)
}

const FILE: &str = "/etc/resolv.conf";
/// File in which systemd-resolved names the servers that it asks.
const BEHIND_RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
/// Folders with sockets of resolvers.
const HIDDEN: [&str; 3] = ["/run/systemd/resolve", "/run/nscd", "/var/run/nscd"];
/// Folders of which each machine has one, and none of which the file lies in while it is mounted.
const FOLDERS: [&str; 4] = ["/tmp", "/run", "/mnt", "/var"];
/// As the C library has it (MAXNS).
const MOST_SERVERS: usize = 3;

#[cfg(test)]
mod tests;
