use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::{env, thread};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::*;

#[test]
fn panic_on_other_thread_restores_terminal_first() {
    let name = "panic_on_other_thread_restores_terminal_first";
    let Some(written) = on_a_terminal(name) else {
        let mut terminal = Terminal::enter().unwrap();
        terminal.draw(|_, _| ()).unwrap();
        let died = thread::spawn(|| panic!("a shard is out of sorts")).join();
        assert!(died.is_err());
        return terminal.draw(|_, _| panic!("nothing is drawn any more")).unwrap();
    };
    let entered = written.find("\u{1b}[?1049h").unwrap();
    let left = written.find("\u{1b}[?1049l").unwrap();
    let told = written.find("a shard is out of sorts").unwrap();
    assert!(entered < left && left < told, "{written:?}");
    assert_eq!(written.matches("\u{1b}[?1049").count(), 2, "{written:?}");
    assert!(written.rfind("\u{1b}[?25h") > written.rfind("\u{1b}[?25l"), "{written:?}");
}

/// Output of the test `name`, run once more on a separate terminal, whose modes it must restore; `None`
/// in that run.
fn on_a_terminal(name: &str) -> Option<String> {
    if env::var_os(ON_A_TERMINAL).is_some() {
        return None;
    }
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let path = ptsname(&near, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&near, size).unwrap();
    let modes = format!("{:?}", tcgetattr(&own).unwrap());
    let end = || Stdio::from(own.try_clone().unwrap());
    let test = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &test, "--nocapture"]).env(ON_A_TERMINAL, "1");
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let reader = thread::spawn(move || {
        let (mut written, mut bytes) = (Vec::new(), [0; 4_096]);
        let mut from = File::from(near);
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            written.extend(&bytes[..count]);
        }
        String::from_utf8_lossy(&written).into_owned()
    });
    assert!(child.wait().unwrap().success());
    assert_eq!(format!("{:?}", tcgetattr(&own).unwrap()), modes);
    // Its last user: now there is an end to read.
    drop((command, own));
    Some(reader.join().unwrap())
}

const ON_A_TERMINAL: &str = "WHIMBREL_TEST_ON_A_TERMINAL";
