//! Programs of others behind `whimbrel run`, by each kind of device.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use rustix::net::sockopt::set_socket_linger;

use super::{Machines, NODES, Node};
use crate::netns::Net;
use crate::running::{Running, await_that, output, succeed, unbroken};
use crate::stalls;

#[test]
fn program_loads_every_byte_by_each_kind_of_device() {
    loads(16 << 20);
}

/// Loads a file of so many bytes by curl and by a static program.
pub(crate) fn loads(len: usize) {
    let Some(machines) = Machines::new(&["busybox", "cmp"]) else { return };
    machines.load_by_each(len, &NODES, |node, program| {
        let (code, text) = machines.ran(node, &[&["--quiet", "--"], program].concat());
        assert_eq!((code, &*text), (Some(0), ""), "{node:?} {program:?}");
    });
}

#[test]
fn git_clones_a_repository() {
    let Some(machines) = Machines::new(&["git"]) else { return };
    let folder = machines.far.folder();
    let repository = folder.join("r");
    fs::create_dir(&repository).unwrap();
    // What no compression makes small.
    let mut state = 1_u64;
    let file: Vec<u8> = (0..4 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    fs::write(repository.join("file"), &file).unwrap();
    for line in [
        "init -q",
        "add file",
        "-c user.name=someone -c user.email=someone@example.com commit -q -m All",
    ] {
        let mut git = machines.far.command("git");
        git.arg("-C").arg(&repository).args(line.split(' ')).env("HOME", folder);
        succeed(&mut git);
    }
    let mut daemon = machines.far.command("git");
    let ready = folder.join("ready");
    daemon.args(["daemon", "--export-all", "--listen=203.0.113.9"]).env("HOME", folder);
    daemon.arg(format!("--base-path={}", folder.display()));
    daemon.arg(format!("--pid-file={}", ready.display())).arg(folder).stderr(Stdio::null());
    let _daemon = Running::start(&mut daemon);
    await_that("git daemon listens", || ready.exists());
    for node in NODES {
        let words = ["--quiet", "--", "git", "clone", "-q", "git://203.0.113.9/r", "clone"];
        let (code, text) = machines.ran(node, &words);
        assert_eq!((code, &*text), (Some(0), ""), "{node:?}");
        let clone = machines.near.folder().join("clone");
        assert!(fs::read(clone.join("file")).unwrap() == file, "{node:?}");
        fs::remove_dir_all(clone).unwrap();
    }
}

/// A program in Go, which has no C library to be fooled by.
#[test]
fn five_hundred_clients_of_hey_see_no_error_and_repeat_no_syn() {
    let Some(machines) = Machines::new(&["hey", "nstat"]) else { return };
    let web = machines.web(1000);
    for node in NODES {
        let hey = "hey -n 500 -c 500 http://203.0.113.9/file && nstat -asz TcpExtTCPSynRetrans";
        let (code, text) = machines.ran(node, &["--quiet", "--", "sh", "-c", hey]);
        let repeated = text.lines().last().and_then(|line| line.split_whitespace().nth(1));
        assert_eq!((code, repeated), (Some(0), Some("0")), "{node:?}: {text}");
        let is_whole = text.contains("500 responses") && !text.contains("Error distribution");
        assert!(is_whole, "{node:?}: {text}");
    }
    web.end();
}

#[test]
fn upload_that_the_server_resets_fails_in_curl() {
    let Some(machines) = Machines::new(&["head"]) else { return };
    let server = Machines::on(&machines.far, || TcpListener::bind("203.0.113.9:80")).unwrap();
    let _resets = thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            client.read_exact(&mut vec![0; 2 << 20]).unwrap();
            set_socket_linger(&client, Some(std::time::Duration::ZERO)).unwrap();
        }
    });
    for node in NODES {
        let upload = "head -c 200M /dev/zero | curl -sS -H Expect: -T - http://203.0.113.9/up";
        let words = ["--json", "-o", "summary", "--", "sh", "-c", upload];
        let (code, text) = machines.ran(node, &words);
        assert!(matches!(code, Some(55 | 56)), "{node:?}: {code:?} {text}");
        let summary = machines.summary();
        assert_eq!(summary["flows"]["reset_by_servers"], 1, "{node:?}: {summary}");
    }
}

#[test]
fn nginx_logs_its_clients_addresses() {
    let Some(machines) = Machines::new(&["nginx"]) else { return };
    let path = machines.near.folder().display().to_string();
    let config = format!(
        "master_process off; daemon off; pid {path}/pid; error_log {path}/error;\n\
         events {{ worker_connections 64; }}\n\
         http {{ log_format a '$remote_addr $status'; access_log {path}/access a;\n\
         client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
         fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
         server {{ listen 80; location / {{ return 204; }} }} }}\n"
    );
    fs::write(machines.near.folder().join("nginx.conf"), config).unwrap();
    let conf = format!("{path}/nginx.conf");
    let (pid, error) = (Path::new(&path).join("pid"), format!("{path}/early"));
    for node in NODES {
        let _ = fs::remove_file(&pid);
        let words = ["--quiet", "-p", "0.0.0.0:8080:80", "--", "nginx", "-e", &error, "-c", &conf];
        let mut run = Running::start(&mut machines.run(node, &words));
        await_that("nginx listens", || fs::read(&pid).is_ok_and(|pid| !pid.is_empty()));
        let get = |net: &Net, at: &str| {
            succeed(net.command("curl").args(["-sS", "--fail", &format!("http://{at}:8080/")]));
        };
        get(&machines.far, "203.0.113.1");
        get(&machines.near, "127.0.0.1");
        get(&machines.near, "203.0.113.1");
        run.signal(crate::running::Signal::QUIT);
        assert!(run.wait().success(), "{node:?}");
        let log = fs::read_to_string(format!("{path}/access")).unwrap();
        fs::remove_file(format!("{path}/access")).unwrap();
        assert_eq!(log, "203.0.113.9 204\n10.0.2.2 204\n203.0.113.1 204\n", "{node:?}");
    }
}

/// A line of 10 Mb/s is as long behind `run` as between two of our stacks.
#[test]
fn curl_takes_as_long_over_a_path_as_bulk() {
    let Some(machines) = Machines::new(&[]) else { return };
    let web = machines.web(10 << 20);
    let path = "rate=10M,delay=40ms";
    let bulk = thread::spawn(move || {
        let words = format!("bulk send -n 10M -w mem:{path} --json");
        crate::running::document(&words)["summary"]["duration"].as_f64().unwrap()
    });
    let curl = ["curl", "-sS", "-o", "got", "-w", "%{time_total}", "http://203.0.113.9/file"];
    let words = [&["--quiet", "--link", path, "--"], &curl[..]].concat();
    let (code, text) = machines.ran(Node::Open, &words);
    assert_eq!(code, Some(0), "{text}");
    let (curl, bulk) = (text.parse::<f64>().unwrap(), bulk.join().unwrap());
    assert!((curl / bulk - 1.0).abs() < 0.05, "curl took {curl} s, bulk {bulk} s");
    web.end();
}

#[test]
fn unread_flows_cost_nothing_and_lose_nothing() {
    stall(|machines, words| machines.run(Node::Open, words));
}

/// Runs the near side of flows that neither side reads, by this `run`.
pub(super) fn stall(run: impl Fn(&Machines, &[&str]) -> Command) {
    let Some(machines) = Machines::new(&stalls::PROGRAMS) else { return };
    let path = machines.near.folder();
    let folder = path.to_str().unwrap();
    let far = stalls::far(&machines.far, "203.0.113.9", folder);
    let program = stalls::side("near", "203.0.113.9", folder);
    let words = [&["--json", "-o", "summary", "--"], &program[..]].concat();
    let mut relay = Running::start(&mut run(&machines, &words));
    stalls::watch(&relay, far, &machines.far, path);
    assert!(relay.wait().success());
    let flows = &machines.summary()["flows"];
    let ends = ["opened", "finished", "reset_by_program", "reset_by_servers", "cut"];
    assert_eq!(ends.map(|end| flows[end].as_u64().unwrap()), [17, 9, 4, 4, 0], "{flows}");
}

#[test]
fn mapped_root_is_the_user_outside() {
    let Some(machines) = Machines::new(&[]) else { return };
    let web = machines.web(1000);
    let folder = machines.near.folder();
    let theirs = folder.join("theirs");
    let script = "id -u; id -g; stat -c %u:%g theirs; chown 0:0 theirs; \
                  curl -sS -o got http://203.0.113.9/file; stat -c %u:%g:%s got; \
                  mount -t tmpfs none /mnt && touch /mnt/x && stat -c %u /mnt/x";
    let program = ["sh", "-c", script];
    let user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let on_wire = ["-w", "packet:near,addr=203.0.113.2/24"];
    for node in NODES {
        for (user, id, options) in [(user, 65534, &[][..]), ("env", 0, &on_wire)] {
            fs::write(&theirs, []).unwrap();
            std::os::unix::fs::chown(&theirs, Some(id), Some(id)).unwrap();
            let words = [&["--quiet", "--map-root"], options, &["--"], &program].concat();
            let Output { status, stdout, stderr } =
                output(&mut machines.run_as(user, node, &words));
            let (text, errors) =
                (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert!(status.success() && errors.is_empty(), "{node:?} {id}: {errors}");
            assert_eq!(text, "0\n0\n0:0\n0:0:1000\n0\n", "{node:?} {id}");
            for name in ["theirs", "got"] {
                let file = fs::metadata(folder.join(name)).unwrap();
                assert_eq!((file.uid(), file.gid()), (id, id), "{node:?} {name}");
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
    }
    web.end();
}

/// A user namespace has its own limit of others, which the kernel enforces as if it were the machine's.
#[test]
fn missing_user_namespaces_are_told() {
    let Some(machines) = Machines::new(&[]) else { return };
    let none = "setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Ur sh -c \
                'echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"' sh";
    for options in [&[][..], &["--map-root"]] {
        let words = [options, &["--", "touch", "ran"]].concat();
        let Output { status, stdout, stderr } =
            output(&mut machines.run_as(none, Node::Open, &words));
        let text = unbroken(&String::from_utf8_lossy(&[stdout, stderr].concat()));
        assert_eq!(status.code(), Some(4), "{options:?}: {text}");
        for said in ["a namespace of the program's own was refused", "user-namespaces"] {
            assert!(text.contains(said), "{options:?}: {text}");
        }
        assert!(!machines.near.folder().join("ran").exists(), "{options:?}");
    }
}
