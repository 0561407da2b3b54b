use std::time::Duration;

use whimbrel_tcp::tunables::{FragNeeded, RstInTimeWait};

use super::*;

#[test]
fn every_setting_of_every_profile_has_a_meaning() {
    for profile in PROFILES {
        let tunables =
            profile.tunables().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
        assert_eq!(tunables.validate(), Ok(()), "{}", profile.name);
        assert_eq!(Profile::by_name(profile.name), Some(profile));
        let differs = tunables != Tunables::default();
        assert_eq!(differs, !profile.settings.is_empty(), "{}", profile.name);
    }
    assert_eq!(Profile::by_name("plan9"), None);
}

#[test]
fn a_profile_is_what_its_settings_say() {
    let freebsd = Profile::by_name("freebsd").unwrap().tunables().unwrap();
    assert_eq!((freebsd.recv_buffer, freebsd.send_buffer), (65_536, 32_768));
    assert_eq!(freebsd.tw_rst, RstInTimeWait::Ignore);
    assert_eq!(freebsd.frag_needed, FragNeeded::Immediate);
    let waits = [0, 1, 2].map(|repeats| freebsd.syn_retry.wait(repeats, &freebsd));
    assert_eq!(waits, [1_000, 2_200, 4_200].map(Duration::from_millis));
    let linux = Profile::by_name("linux").unwrap().tunables().unwrap();
    assert_eq!(linux.msl_remote, Duration::from_secs(30));
}
