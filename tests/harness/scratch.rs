//! A place on the disk for the tests of one process, and a guard that clears up behind it.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::env;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A path in a folder of this process' own, which goes with the process: also if that is killed.
pub(crate) fn scratch(name: &str) -> PathBuf {
    place().folder.join(name)
}

/// The network namespace of this name, and all who are in it, end with this process at the latest.
pub(crate) fn guard_namespace(name: &str) {
    let mut guard = place().guard.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(guard) = guard.as_mut() {
        let _ = writeln!(guard, "{name}");
    }
}

struct Place {
    folder: PathBuf,
    /// Input of the guard, which clears up at its end.
    guard: Mutex<Option<ChildStdin>>,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let new = |base: &Path| {
            (0..100).find_map(|number| {
                let folder = base.join(format!("whim-{}-{number}", std::process::id()));
                fs::create_dir(&folder).ok()?;
                // Some tests give up their rights, and still find what was laid there for them.
                fs::set_permissions(&folder, Permissions::from_mode(0o755)).ok().map(|()| folder)
            })
        };
        let given = env::temp_dir();
        let bases = [Path::new("/tmp"), Path::new("/var/tmp"), &given];
        let wanted = if suits(&given) { 2 } else { 0 };
        let folder = (0..3).find_map(|number| new(bases[(wanted + number) % 3]));
        let folder = folder.expect("a folder can be made for temporary files");
        let guard = Mutex::new(watch(&folder));
        Place { folder, guard }
    })
}

/// True if all that tests put below this folder can be done there: its name is one word of a command line
/// and of `--wire`, leaves room for that of a socket (unix(7): 107 bytes), and all users may enter it.
fn suits(base: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let name = base.as_os_str().as_bytes();
    let is_open =
        |folder: &Path| fs::metadata(folder).is_ok_and(|it| it.permissions().mode() & 0o001 != 0);
    name.len() <= LONGEST && name.iter().all(is_plain) && base.ancestors().all(is_open)
}

/// Bytes.
const LONGEST: usize = 40;

/// In a separate process group: a signal to all of a run, from a terminal or timeout(1), does not reach
/// it. Without a shell nothing clears up after a killed run.
fn watch(folder: &Path) -> Option<ChildStdin> {
    clear_up(folder).spawn().ok()?.stdin.take()
}

/// Removes this folder and the namespaces of its input, once that ends.
pub(crate) fn clear_up(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", CLEAR_UP, "sh"]).arg(folder).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// `read` and `kill` are the shell's own. A killed script leaves children that are still about to make a
/// namespace, so it looks for a second.
const CLEAR_UP: &str = r#"
names=
while read -r name; do names="$names $name"; done
for turn in 1 2 3 4 5 6 7 8 9 10; do
    for name in $names; do
        for pid in $(ip netns pids "$name"); do kill -9 "$pid"; done
        ip netns del "$name"
    done
    rm -rf "$1"
    sleep 0.1
done
"#;
