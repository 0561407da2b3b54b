use super::*;

#[test]
fn files_of_the_system_are_read() {
    assert_eq!(capabilities("Name:\tx\nCapEff:\t0000000000003000\n"), 0x3000);
    assert_eq!(capabilities("nothing"), 0);
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

#[test]
fn owner_group_and_others_each_have_a_mode_bit() {
    let status = "Uid:\t5\t7\t7\t7\nGid:\t1\t8\t8\t8\nGroups:\t8 9 \nCapEff:\t0000000000000000\n";
    let may = |uid, gid, mode| may_write(status, uid, gid, mode);
    assert!(may(7, 0, 0o755) && !may(7, 9, 0o577));
    assert!(may(1, 8, 0o775) && may(1, 9, 0o775) && !may(1, 9, 0o757));
    assert!(may(1, 1, 0o777) && !may(1, 1, 0o775) && !may(5, 1, 0o755));
    assert!(may_write("CapEff:\t0000000000000002\n", 1, 1, 0));
}
