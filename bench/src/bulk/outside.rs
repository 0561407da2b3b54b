//! Peers that are programs of their own, built by the scripts of `peers/NAME/bulk`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Buffer, Case, Copies, Stamps};
use crate::Failure;
use crate::peers::last_line;

/// A peer that can be called.
pub(crate) struct Outside {
    /// Name on the command line and in tables.
    pub(super) name: &'static str,
    /// Of its stack.
    pub(super) version: String,
    folder: PathBuf,
}

impl Outside {
    /// Those that can be had; why the others cannot is said on stderr.
    pub(super) fn all() -> Vec<Self> {
        let ready = ["lwip", "gvisor"].into_iter().filter_map(|name| {
            eprintln!("building {name}");
            Self::build(name).inspect_err(|why| eprintln!("without {name}: {why}")).ok()
        });
        ready.collect()
    }

    fn build(name: &'static str) -> Result<Self, Failure> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = bench.join("target/peers").join(name);
        let script = bench.join("peers").join(name).join("bulk/build.sh");
        let output = Command::new("sh").arg(script).arg(&folder).output()?;
        if output.status.success() {
            return Ok(Self { name, version: last_line(&output.stdout), folder });
        }
        Err(last_line(&output.stderr).into())
    }

    /// The call that does a case, as [`case_of`] has it.
    pub(super) fn command(&self, case: Case, measure: Duration) -> Command {
        let (link, flows) = (case.link.name(), case.flows.to_string());
        let mut command = if self.name == "lwip" {
            let mut command =
                Command::new(self.folder.join(format!("bulk-{link}-{}", case.buffer.name())));
            command.arg(flows);
            command
        } else {
            let mut command = Command::new(self.folder.join("bulk"));
            let buffer = case.buffer.bytes().map_or("auto".to_owned(), |it| it.to_string());
            command.args([&flows, link, &buffer]);
            command
        };
        command.arg(measure.as_millis().to_string());
        command
    }
}

/// The case that says the same of such a peer: text is lent to lwIP, and gVisor copies it whatever the
/// application does; lwIP has no timestamps here, gVisor always; buffers that size themselves are gVisor's alone.
pub(super) fn case_of(peer: &str, case: Case) -> Case {
    let sized = if case.buffer == Buffer::Auto { Buffer::Large } else { case.buffer };
    match peer {
        "lwip" => Case { copies: Copies::None, stamps: Stamps::Off, buffer: sized, ..case },
        _ => Case { copies: Copies::None, stamps: Stamps::On, ..case },
    }
}
