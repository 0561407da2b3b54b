use proptest::prelude::*;
use whimbrel_wire::MacAddress;

use super::*;
use crate::{Layer, Offload};

fn tun(spec: &str) -> TunConfig {
    match spec.parse().unwrap() {
        WireSpec::Tun(config) => config,
        other => panic!("{other:?}"),
    }
}

fn error(spec: &str) -> String {
    spec.parse::<WireSpec>().unwrap_err().to_string()
}

#[test]
fn everything_that_can_be_typed_is_meant() {
    let config =
        tun("tun:whim0,addr=10.9.0.2/24,addr=fd09::2/64,host=10.9.0.1,host=fd09::9,queues=2,\
         offload=off,mtu=9000");
    assert_eq!(config.name(), c"whim0");
    let addresses: Vec<_> =
        config.addresses().iter().map(|a| format!("{}/{}", a.addr, a.prefix_len)).collect();
    assert_eq!(addresses, ["10.9.0.2/24", "fd09::2/64"]);
    let hosts: Vec<_> =
        config.hosts().iter().map(|a| format!("{}/{}", a.addr, a.prefix_len)).collect();
    assert_eq!(hosts, ["10.9.0.1/24", "fd09::9/64"]);
    assert_eq!((config.queues(), config.mtu()), (2, 9000));
    assert_eq!(config.offload(), Offload::Off);
}

#[test]
fn a_name_and_an_address_are_enough() {
    let config = tun("tun:whim0,addr=10.9.0.2/24");
    assert_eq!((config.queues(), config.mtu()), (1, 1500));
    assert_eq!(config.offload(), Offload::On);
    assert_eq!(config.hosts()[0].addr.to_string(), "10.9.0.1");
}

#[test]
fn ethernet_frames_and_a_socket_are_typed_alike() {
    let WireSpec::Tap(config) =
        "tap:t,addr=10.9.0.2/24,mac=02:0a:00:00:00:Ff,mtu=9000".parse().unwrap()
    else {
        panic!("no tap:")
    };
    assert_eq!(config.layer(), Layer::Ethernet(Some(MacAddress([2, 10, 0, 0, 0, 255]))));
    assert_eq!((config.mtu(), config.hosts().len()), (9000, 1));
    let drawn: WireSpec = "tap:t,addr=10.9.0.2/24,offload=off".parse().unwrap();
    assert!(matches!(&drawn, WireSpec::Tap(config) if config.layer() == Layer::Ethernet(None)));
    assert_eq!((drawn.addresses().len(), drawn.routes().len()), (1, 1));

    let unix: WireSpec = "unix:/tmp/w.sock,addr=10.9.0.2/24,addr=fd09::2/64".parse().unwrap();
    assert_eq!((unix.addresses().len(), unix.routes().len()), (2, 2));
    let WireSpec::Unix(config) = unix else { panic!("no unix:") };
    assert_eq!((config.path().to_str(), config.mtu()), (Some("/tmp/w.sock"), 1500));
}

#[test]
fn duplicate_address_detection_is_on_by_default() {
    for wire in ["tap:t", "packet:e"] {
        for (key, dad) in [
            ("", DuplicateAddressDetection::On),
            (",dad=on", DuplicateAddressDetection::On),
            (",dad=off", DuplicateAddressDetection::Off),
        ] {
            let spec: WireSpec = format!("{wire},addr=10.9.0.2/24{key}").parse().unwrap();
            assert_eq!(spec.dad(), dad, "{wire}{key}");
        }
    }
    assert_eq!(
        "unix:/tmp/w,addr=10.9.0.2/24".parse::<WireSpec>().unwrap().dad(),
        DuplicateAddressDetection::Off
    );
}

#[test]
fn errors_name_the_key_the_value_what_is_allowed_and_an_example() {
    let cases = [
        ("whim0", ["\"whim0\"", "KIND:TARGET", "tun:whim0,addr="]),
        ("tum:whim0", ["\"tum\"", "this version has tun:, tap:, packet:, unix:,", "as in"]),
        ("xdp:eth0", ["xdp:", "planned", "only tun:"]),
        ("tun:", ["interface name", "tun:whim0", "addr="]),
        ("tun:t,adr=10.9.0.2/24", ["\"adr\"", "addr, host, queues, offload and mtu", "as in"]),
        ("tun:t,addr", ["\"addr\"", "no key=value", "as in"]),
        ("tun:t,addr=10.9.0.2", ["addr=10.9.0.2:", "ADDRESS/PREFIX", "addr=10.9.0.2/24"]),
        ("tun:t,addr=10.9.0.2/33", ["33 of 10.9.0.2", "32 bits", "give 0 to 32"]),
        ("tun:t,addr=::ffff:1.2.3.4/120", ["addr=::ffff", "ADDRESS/PREFIX", "as in"]),
        ("tun:t,addr=10.9.0.2/24,host=x", ["host=x", "an address", "host=10.9.0.1"]),
        ("tun:t,addr=10.9.0.2/24,host=10.8.0.1", ["10.8.0.1", "same prefix", "host=10.9.0.1"]),
        ("tun:t,addr=10.9.0.2/24,mtu=70000", ["mtu=70000", "68 to 65535", "mtu=1500"]),
        ("tun:t,addr=10.9.0.2/24,mtu=20", ["mtu 20", "68 to 65535", "bytes"]),
        ("tun:t,addr=10.9.0.2/24,queues=0", ["queues 0", "1 to 256", "give"]),
        ("tun:t,addr=10.9.0.2/24,offload=yes", ["offload=yes", "on or off", "offload=on"]),
        ("tun:t,addr=10.9.0.2/24,mtu=100,mtu=200", ["mtu is given twice", "addr", "host"]),
        ("tun:t", ["needs an address", "at least one", "addr=10.9.0.2/24"]),
        ("tap:", ["an interface name", "tap:whim0", "addr="]),
        ("tap:t,queues=2", ["\"queues\"", "addr, host, mac, offload, mtu and dad", "tap:whim0"]),
        ("tap:t,addr=10.9.0.2/24,mac=2:0", ["mac=2:0", "hexadecimal", "mac=02:00:00:00:00:01"]),
        ("tap:t,addr=10.9.0.2/24,mac=01:00:00:00:00:01", ["01:00:00", "no single", "mac=02:"]),
        ("tap:t,addr=10.9.0.2/24,mtu=65522", ["mtu 65522", "68 to 65521", "bytes"]),
        ("packet:,addr=10.9.0.2/24", ["an interface name", "packet:eth0", "gw="]),
        ("packet:e,mtu=1500", ["\"mtu\"", "addr, gw, mac, fanout, offload and dad", "packet:eth0"]),
        ("packet:e,addr=10.9.0.2/24,gw=10.8.0.1", ["gateway 10.8.0.1", "same prefix", "gw="]),
        ("packet:e,addr=10.9.0.2/24,gw=x", ["gw=x", "without prefix", "gw=10.9.0.1"]),
        ("packet:e,addr=10.9.0.2/24,gw=10.9.0.2", ["10.9.0.2", "given twice", "each"]),
        ("packet:e,addr=10.9.0.2/24,dad=yes", ["dad=yes", "on or off", "dad=off"]),
        ("tun:t,addr=10.9.0.2/24,dad=on", ["\"dad\"", "tun: has the keys", "as in"]),
        ("packet:e,addr=10.9.0.2/24,fanout=0", ["fanout 0", "1 to 256", "give"]),
        ("packet:e,addr=10.9.0.2/24,mac=00:00:00:00:00:00", ["00:00", "no single", "mac=02:"]),
        ("unix:,addr=10.9.0.2/24", ["the path of a socket", "unix:/run", "addr="]),
        ("unix:/tmp/w,host=10.9.0.1", ["\"host\"", "addr and mtu", "unix:/run"]),
        ("unix:/tmp/w", ["needs an address", "at least one", "addr=10.9.0.2/24"]),
        ("unix:/tmp/w,addr=fd09::2/64,mtu=576", ["mtu 576", "1280 to 65535", "bytes"]),
    ];
    for (spec, parts) in cases {
        let error = error(spec);
        for part in parts {
            assert!(error.contains(part), "{spec}: {error:?} lacks {part:?}");
        }
    }
}

proptest! {
    #[test]
    fn anything_typed_gives_a_wire_or_an_error(rest in "[a-z0-9:=,./]{0,60}") {
        for kind in ["tun", "tap", "packet", "unix"] {
            let _ = format!("{kind}:t,{rest}").parse::<WireSpec>();
        }
        let _ = rest.parse::<WireSpec>();
    }
}

#[test]
fn mem_wire_takes_link_options_and_kernel_takes_none() {
    let Ok(WireSpec::Mem(link)) = "mem:rate=45M,delay=35ms".parse() else { panic!("no link") };
    assert_eq!(link.rate, Some(45_000_000));
    assert_eq!("mem:".parse(), Ok(WireSpec::Mem(LinkConfig::default())));
    assert_eq!("kernel:".parse(), Ok(WireSpec::Kernel));
    let refused = |text: &str| text.parse::<WireSpec>().unwrap_err().to_string();
    assert_eq!(refused("mem:loss=1"), "mem: loss=1: give 0% to 100%, as in loss=0.1%");
    assert!(refused("kernel:eth0").contains("stands alone"));
    assert!(WireSpec::Kernel.addresses().is_empty());
}
