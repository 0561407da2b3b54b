use std::time::Duration;

use whimbrel_tcp::tunables::RstInTimeWait;

use super::*;

#[test]
fn every_setting_of_every_persona_has_a_meaning() {
    for persona in PERSONAS {
        let tunables =
            persona.tunables().unwrap_or_else(|error| panic!("{}: {error}", persona.name));
        assert_eq!(tunables.validate(), Ok(()), "{}", persona.name);
        assert_eq!(Persona::by_name(persona.name), Some(persona));
        let differs = tunables != Tunables::default();
        assert_eq!(differs, !persona.settings.is_empty(), "{}", persona.name);
    }
    assert_eq!(Persona::by_name("plan9"), None);
}

#[test]
fn a_persona_is_what_its_settings_say() {
    let freebsd = Persona::by_name("freebsd").unwrap().tunables().unwrap();
    assert_eq!((freebsd.recv_buffer, freebsd.send_buffer), (65_536, 32_768));
    assert_eq!(freebsd.tw_rst, RstInTimeWait::Ignore);
    let waits = [0, 1, 2].map(|repeats| freebsd.syn_retry.wait(repeats, &freebsd));
    assert_eq!(waits, [1_000, 2_200, 4_200].map(Duration::from_millis));
    let linux = Persona::by_name("linux").unwrap().tunables().unwrap();
    assert_eq!(linux.msl_remote, Duration::from_secs(30));
}
