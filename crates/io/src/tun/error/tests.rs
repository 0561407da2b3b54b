use super::*;

fn os(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

#[test]
fn missing_device_or_privilege_differs_from_other_errors() {
    for error in [
        TunError::on_open(os(libc::ENOENT)),
        TunError::on_open(os(libc::EACCES)),
        TunError::on_attach("t", os(libc::EPERM)),
        TunError::on_setup("set the link up", "t", os(libc::EPERM)),
    ] {
        assert!(error.is_privilege_or_device(), "{error}");
    }
    for error in [
        TunError::on_attach("t", os(libc::EBUSY)),
        TunError::on_attach("t", os(libc::EINVAL)),
        TunError::on_setup("add an address", "t", os(libc::EACCES)),
    ] {
        assert!(!error.is_privilege_or_device(), "{error}");
    }
}
