use super::*;

#[test]
fn files_of_the_system_are_read() {
    assert_eq!(capabilities("Name:\tx\nCapEff:\t0000000000003000\n"), 0x3000);
    assert_eq!(capabilities("nothing"), 0);
    assert_eq!(port_range("32768\t60999"), Some((32_768, 60_999)));
    assert_eq!(port_range(""), None);
    let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n\
                  Max locked memory  unlimited  unlimited  bytes\n";
    assert_eq!(limit(limits, "Max open files"), Some(1_024));
    assert_eq!(limit(limits, "Max locked memory"), None);
}

#[test]
fn each_address_of_the_machine_is_named_once() {
    let routes = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.9.0.1\n        /32 host LOCAL\n\
                  |-- 10.9.0.0\n        /24 link UNICAST\nLocal:\n     |-- 10.9.0.1\n\
                  \x20       /32 host LOCAL\n     |-- 10.9.0.255\n        /32 link BROADCAST\n";
    let v6 = "fd090000000000000000000000000001 03 40 00 80 vkernel\n";
    assert_eq!(addresses(routes, v6), ["10.9.0.1", "fd09::1"]);
    assert!(addresses("", "").is_empty());
}
