use super::*;

#[test]
fn text_and_types_of_std_give_the_same_address() {
    let v4 = Ipv4Addr::new(10, 0, 0, 1);
    for given in [
        "10.0.0.1".to_address(),
        String::from("10.0.0.1").to_address(),
        v4.to_address(),
        IpAddr::from(v4).to_address(),
        Address::from(v4).to_address(),
    ] {
        assert_eq!(given, Ok(v4.into()));
    }
    assert_eq!("fd00::1".to_address(), "fd00::1".parse::<Ipv6Addr>().unwrap().to_address());
}

#[test]
fn text_that_is_no_address_is_named_in_the_error() {
    for text in ["", "10.0.0", "10.0.0.1/24", "10.0.0.1:80", "example.org"] {
        let error = io::Error::from(text.to_address().unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let says = format!("{text:?} is no address: give one, as in 10.9.0.2 or fd09::2");
        assert_eq!(error.to_string(), says);
    }
}
