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
