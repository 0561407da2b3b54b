//! By which rules a stack goes: a file, the environment, and what the program says itself.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

use whimbrel::{BuildError, LinkConfig, Stack, StackBuilder, mem_wire};

/// A file of the test's own, removed at the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, text: &str) -> Self {
        let path = env::temp_dir().join(format!("whim-types-{}-{name}.toml", process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn built(builder: StackBuilder) -> Stack {
    let (end, _) = mem_wire(LinkConfig::default(), LinkConfig::default(), 7).unwrap();
    builder.mem(end).address("10.0.0.1", 24).unwrap().build().unwrap()
}

#[test]
fn a_file_replaces_all_rules_and_what_is_set_after_it_prevails() {
    let file = TestFile::new("file", "profile = \"linux\"\n[tunables]\nack_every = 3\n");
    let stack = Stack::builder().set("ack_every", "9").unwrap().config_file(&file.0).unwrap();
    let stack = built(stack.set("net.ipv4.tcp_retries2", "4").unwrap());
    let rules = stack.tunables();
    assert_eq!((rules.ack_every, rules.syn_retries, rules.retries), (3, 5, 4));
}

#[test]
fn a_file_that_means_nothing_is_refused_by_its_line() {
    let file = TestFile::new("wrong", "[tunables]\n\nack_every = 99999\n");
    let refused = Stack::builder().config_file(&file.0).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, BuildError::Rules(_)), "{text}");
    assert!(text.starts_with(&format!("{}:3: ack_every=99999", file.0.display())), "{text}");
}

#[test]
fn variables_prevail_over_a_file_whoever_is_asked_first() {
    const VARIABLE: &str = "WHIMBREL_ACK_EVERY";
    const OWN_NAME: &str = "rules::variables_prevail_over_a_file_whoever_is_asked_first";
    if env::var_os(VARIABLE).is_none() {
        // Variables are a process's from its beginning.
        let mut again = Command::new(env::current_exe().unwrap());
        let output = again.args(["--exact", OWN_NAME]).env(VARIABLE, "4").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let file = TestFile::new("both", "[tunables]\nack_every = 3\nretries = 6\n");
    let one = Stack::builder().config_file(&file.0).unwrap().environment().unwrap();
    let other = Stack::builder().environment().unwrap().config_file(&file.0).unwrap();
    for builder in [one, other] {
        let stack = built(builder);
        assert_eq!((stack.tunables().ack_every, stack.tunables().retries), (4, 6));
    }
}
