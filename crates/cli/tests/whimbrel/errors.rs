//! What `whimbrel` says when it cannot do what it is asked, and its exit codes.

use std::process::Command;

use crate::netns::{Net, fail, public_copy};

fn whimbrel(words: &str) -> (i32, String) {
    fail(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn assert_says(error: &(i32, String), code: i32, parts: &[&str]) {
    assert_eq!(error.0, code, "{}", error.1);
    for part in parts {
        assert!(error.1.contains(part), "{part:?} is not in: {}", error.1);
    }
}

#[test]
fn a_command_line_that_means_nothing_exits_with_2() {
    assert_says(&whimbrel("serve -w tin:x"), 2, &["--wire", "tin", "tun:"]);
    assert_says(&whimbrel("serve -w tun:t0"), 2, &["--wire", "addr="]);
    assert_says(&whimbrel("serve -w tun:t0,addr=10.1.0.2/99"), 2, &["0 to 32"]);
    assert_says(&whimbrel("serve -w tap:t0,addr=10.1.0.2/24,mac=x"), 2, &["mac=02:00:00"]);
    assert_says(&whimbrel("serve -w unix:/t,host=10.1.0.2"), 2, &["addr and mtu", "unix:/run"]);
    assert_says(&whimbrel("serve -l 10.9.0.77:80"), 2, &["--listen", "which has 10.9.0.2"]);
    assert_says(&whimbrel("serve -l nowhere"), 2, &["ADDR:PORT"]);
    assert_says(&whimbrel("serve --body many"), 2, &["--body", "64k"]);
    assert_says(&whimbrel("serve -S msl=soon"), 2, &["--set", "msl.remote", "0s to 255s"]);
    assert_says(&whimbrel("serve --set tcp_syn_retrys=3"), 2, &["net.ipv4.tcp_syn_retries"]);
    assert_says(&whimbrel("serve -S tcp_retries2=31"), 2, &["1 to 30 retransmissions"]);
    assert_says(&whimbrel("serve --upload"), 2, &["--file-root"]);
    assert_says(&whimbrel("sevre"), 2, &["serve"]);
    assert_says(&whimbrel(""), 2, &["Usage"]);
}

#[test]
fn a_file_root_that_cannot_be_read_exits_with_1() {
    let error = whimbrel("serve --file-root /nowhere/at/all");
    assert_says(&error, 1, &["--file-root /nowhere/at/all", "No such file", "give a directory"]);
}

#[test]
fn a_path_that_is_no_sockets_exits_with_1() {
    let error = whimbrel("serve -w unix:/etc/passwd,addr=10.9.0.2/24");
    assert_says(&error, 1, &["/etc/passwd exists and is no socket", "another path"]);
}

#[test]
fn a_name_in_use_exits_with_1_and_an_address_in_use_too() {
    let Some(net) = Net::new() else { return };
    let serve = net.serve(&[]);
    let mut second = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    assert_says(&fail(second.arg("serve")), 1, &["whim0", "another process", "another name"]);
    serve.stop();
    let mut twice = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    twice.args(["serve", "-l", "10.9.0.2:80", "-l", "10.9.0.2:80"]);
    assert_says(&fail(&mut twice), 1, &["address in use", "10.9.0.2:80", "another port"]);
}

#[test]
fn a_missing_privilege_exits_with_4() {
    let Some(net) = Net::new() else { return };
    let copy = public_copy(net.folder());
    let mut command = net.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).arg("serve");
    assert_says(&fail(&mut command), 4, &["no privilege", "/dev/net/tun", "CAP_NET_ADMIN"]);
}

#[test]
fn a_missing_device_exits_with_4() {
    let Some(net) = Net::new() else { return };
    let mut command = net.command("unshare");
    let hide = "mount -t tmpfs none /dev/net && exec \"$0\" serve";
    command.args(["-m", "sh", "-c", hide, env!("CARGO_BIN_EXE_whimbrel")]);
    assert_says(&fail(&mut command), 4, &["no TUN device", "modprobe tun"]);
}
