//! By which rules a stack goes: a file, the environment, and what the program says itself.

use std::env;
use std::process::Command;

use whimbrel::{BuildError, LinkConfig, Stack, StackBuilder, mem_wire};

use crate::test_file::TestFile;

fn built(builder: StackBuilder) -> Stack {
    let (end, _) = mem_wire(LinkConfig::default(), LinkConfig::default(), 7).unwrap();
    builder.mem(end).address("10.0.0.1", 24).unwrap().build().unwrap()
}

#[test]
fn a_file_replaces_all_rules_and_what_is_set_after_it_prevails() {
    let file = TestFile::new("file", "profile = \"linux\"\n[tunables]\nack_every = 3\n");
    let stack = Stack::builder().set("ack_every", "9").unwrap().config_file(file.path()).unwrap();
    let stack = built(stack.set("net.ipv4.tcp_retries2", "4").unwrap());
    let rules = stack.tunables();
    assert_eq!((rules.ack_every, rules.syn_retries, rules.retries), (3, 5, 4));
}

#[test]
fn a_file_that_means_nothing_is_refused_by_its_line() {
    let file = TestFile::new("wrong", "[tunables]\n\nack_every = 99999\n");
    let refused = Stack::builder().config_file(file.path()).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, BuildError::Rules(_)), "{text}");
    assert!(text.starts_with(&format!("{}:3: ack_every=99999", file.name())), "{text}");
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
    let one = Stack::builder().config_file(file.path()).unwrap().environment().unwrap();
    let other = Stack::builder().environment().unwrap().config_file(file.path()).unwrap();
    for builder in [one, other] {
        let stack = built(builder);
        assert_eq!((stack.tunables().ack_every, stack.tunables().retries), (4, 6));
    }
}
