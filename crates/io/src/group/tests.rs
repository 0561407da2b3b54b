use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_link::LinkConfig;
use whimbrel_stack::{InterfaceAddress, ListenerId, RxFrame, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::pair::mem_capabilities;

const KEY: &str = "0123456789abcdef0123456789ABCDEF";

#[test]
fn a_key_is_32_digits_and_what_is_wrong_is_told_without_it() {
    assert!(format!(" {KEY}\n").parse::<GroupKey>().is_ok());
    let error = |text: &str| text.parse::<GroupKey>().unwrap_err().to_string();
    assert!(error(&KEY[1..]).contains("31 characters"), "{}", error(&KEY[1..]));
    assert!(error("").contains("0 characters"));
    let wrong = error(&KEY.replacen('f', "g", 1));
    assert!(wrong.contains("character 16 is no") && !wrong.contains("0123"), "{wrong}");
    assert!(error(&"0".repeat(32)).contains("alike"));
    assert!(!format!("{:?}", KEY.parse::<GroupKey>().unwrap()).contains("01"));
}

#[test]
fn a_key_is_kept_in_a_file_or_in_a_variable() {
    let path = env::temp_dir().join(format!("whim-key-{}", std::process::id()));
    fs::write(&path, format!("{KEY}\n")).unwrap();
    let source: KeySource = format!("file:{}", path.display()).parse().unwrap();
    assert!(source.read().is_ok());
    fs::remove_file(&path).unwrap();
    assert!(source.read().unwrap_err().to_string().contains("give a file with 32"));
    let source: KeySource = "env:WHIMBREL_NO_SUCH_KEY".parse().unwrap();
    assert!(source.read().unwrap_err().to_string().contains("has no WHIMBREL_NO_SUCH_KEY"));
    for wrong in [KEY, "file:", "env:", "stdin:x"] {
        let error = wrong.parse::<KeySource>().unwrap_err().to_string();
        assert!(error.contains("file:PATH or env:NAME") && !error.contains("456"), "{error}");
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 0, 0, host])
}

fn shard(host: u8, secrets: Secrets) -> Shard {
    Shard::new(ShardConfig {
        tunables: Tunables { syn_cookies: SynCookies::Always, ..Tunables::default() },
        secrets,
        capabilities: mem_capabilities(&LinkConfig::default()),
        addresses: vec![InterfaceAddress { addr: address(host), prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

/// Returns a server whose other keys come from `seed`, and its listener.
fn server(seed: u64, key: &str) -> (Shard, ListenerId) {
    let key: GroupKey = key.parse().unwrap();
    let mut secrets = Secrets::from_seed(seed);
    key.share(&mut secrets);
    let mut shard = shard(2, secrets);
    key.join(&mut shard);
    let listener = shard.listen(Endpoint::new(address(2), 80), 8).unwrap();
    (shard, listener)
}

/// Passes what `from` sends to `to`.
fn pass(from: &mut Shard, to: &mut Shard) {
    let mut batch = TxBatch::new(4);
    from.tx(&mut batch);
    for segment in batch.pending() {
        let bytes = segment.to_vec();
        to.rx(Instant::ZERO, &[RxFrame::new(&bytes, SegMeta::SINGLE)]);
    }
}

#[test]
fn hosts_with_one_key_complete_each_others_handshakes() {
    for (key, completes) in [(KEY, true), ("00112233445566778899aabbccddeeff", false)] {
        let (mut first, _) = server(1, KEY);
        let (mut second, listener) = server(2, key);
        let mut client = shard(1, Secrets::from_seed(3));
        client.connect(Endpoint::new(address(2), 80), None).unwrap();
        pass(&mut client, &mut first);
        pass(&mut first, &mut client);
        pass(&mut client, &mut second);
        assert_eq!(second.accept(listener).is_some(), completes);
    }
}
