use std::env;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{STALE_CHECK, SocketFile, at_short_path, connect, own_folder, sweep};
use crate::control::{ControlError, ControlPlace};

/// A folder of the test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("whim-place-{}-{number}", std::process::id());
        let folder = Self(env::temp_dir().join(name));
        fs::create_dir(&folder.0).expect("a temporary folder");
        folder.set_mode(0o700);
        folder
    }

    fn set_mode(&self, mode: u32) {
        fs::set_permissions(&self.0, Permissions::from_mode(mode)).expect("our folder");
    }

    fn place(&self, name: &str) -> ControlPlace {
        ControlPlace::Path(self.0.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refusal(place: &ControlPlace) -> String {
    SocketFile::bind(place).map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn socket_has_mode_600_and_goes_at_the_end() {
    let folder = Folder::new();
    let path = folder.0.join("a.sock");
    let (file, _listener) = SocketFile::bind(&folder.place("a.sock")).expect("free");
    assert_eq!(fs::symlink_metadata(&path).expect("bound").mode() & 0o777, 0o600);
    drop(file);
    assert!(!path.exists());
}

#[test]
fn stale_socket_is_replaced_and_live_one_refused() {
    let folder = Folder::new();
    drop(at_short_path(&folder.0.join("a.sock"), UnixListener::bind).expect("free"));
    let (_file, _listener) = SocketFile::bind(&folder.place("a.sock")).expect("stale");
    let text = refusal(&folder.place("a.sock"));
    assert!(text.contains("a process listens there"), "{text}");
}

#[test]
fn socket_that_replaced_ours_stays() {
    let folder = Folder::new();
    let path = folder.0.join("a.sock");
    let (file, _listener) = SocketFile::bind(&folder.place("a.sock")).expect("free");
    fs::remove_file(&path).expect("ours");
    let _other = at_short_path(&path, UnixListener::bind).expect("free");
    drop(file);
    assert!(path.exists());
}

#[test]
fn other_files_are_refused_and_stay() {
    let folder = Folder::new();
    let path = folder.0.join("a.sock");
    fs::write(&path, "text").expect("our folder");
    let text = refusal(&folder.place("a.sock"));
    assert!(text.contains("is no socket"), "{text}");
    assert_eq!(fs::read(&path).expect("there"), b"text");
    // Not even a link to a socket is followed.
    let _live = at_short_path(&folder.0.join("b.sock"), UnixListener::bind).expect("free");
    symlink("b.sock", folder.0.join("c.sock")).expect("our folder");
    assert!(refusal(&folder.place("c.sock")).contains("is no socket"));
}

#[test]
fn socket_in_a_folder_with_a_long_path_is_found() {
    let folder = Folder::new();
    let long = folder.0.join("b".repeat(150));
    fs::create_dir(&long).expect("our folder");
    let path = long.join("a.sock");
    let (file, _listener) = SocketFile::bind(&ControlPlace::Path(path.clone())).expect("free");
    assert!(connect(&path, STALE_CHECK).is_ok());
    drop(file);
    assert!(!path.exists());
}

#[test]
fn connect_to_a_full_queue_ends_in_time() {
    let folder = Folder::new();
    let path = folder.0.join("a.sock");
    let _never_accepts = at_short_path(&path, UnixListener::bind).expect("free");
    let refused = |_| connect(&path, STALE_CHECK).err();
    let error = (0..100_000).find_map(refused).expect("a queue is full at some time");
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    assert!(refusal(&folder.place("a.sock")).contains("a process that does not run listens there"));
    assert!(path.exists());
}

#[test]
fn linked_missing_and_long_names_are_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    symlink(&other.0, folder.0.join("link")).expect("our folder");
    assert!(refusal(&folder.place("link/a.sock")).contains("is a symbolic link"));
    assert!(refusal(&folder.place("none/a.sock")).contains("No such file"));
    assert!(refusal(&folder.place(&"a".repeat(120))).contains("at most 107 bytes"));
    fs::write(folder.0.join("file"), "").expect("our folder");
    assert!(refusal(&folder.place("file/a.sock")).contains("is no folder"));
    let error = own_folder(&folder.0.join("link")).expect_err("a link");
    assert!(error.to_string().contains("is a symbolic link"), "{error}");
}

#[test]
fn default_folder_is_made_and_must_be_private() {
    let folder = Folder::new();
    let own = folder.0.join("whimbrel");
    own_folder(&own).expect("made");
    assert_eq!(fs::metadata(&own).expect("made").mode() & 0o777, 0o700);
    own_folder(&own).expect("as before");
    for mode in [0o777, 0o750, 0o701] {
        fs::set_permissions(&own, Permissions::from_mode(mode)).expect("our folder");
        let error = own_folder(&own).expect_err("open to others");
        assert!(matches!(error, ControlError::Folder { .. }));
        assert!(error.to_string().contains("so that others can use it"), "{error}");
    }
}

#[test]
fn second_stack_of_a_process_has_a_second_number() {
    let folder = Folder::new();
    let (first, _one) = SocketFile::bind_in(&folder.0).expect("free");
    let (second, _two) = SocketFile::bind_in(&folder.0).expect("another name");
    let pid = std::process::id();
    assert!(first.path().ends_with(format!("{pid}.sock")));
    assert!(second.path().ends_with(format!("{pid}-2.sock")));
}

#[test]
fn sockets_of_ended_processes_are_removed() {
    let folder = Folder::new();
    // No process has such a number: they end at 4,194,304.
    let own = format!("{}.sock", std::process::id());
    let names = ["4999999.sock", "4999999-2.sock", "4999998.sock", "other.sock", own.as_str()];
    let bind = |name| at_short_path(&folder.0.join(name), UnixListener::bind).expect("free");
    let [first, second, _answers, other, ours] = names.map(bind);
    drop((first, second, other, ours));
    sweep(&folder.0);
    let is_there = names.map(|name| folder.0.join(name).exists());
    assert_eq!(is_there, [false, false, true, true, true]);
}
