use std::time::Duration;

use whimbrel_tcp::TUNABLES;
use whimbrel_tcp::tunables::{FragNeeded, RstInTimeWait, SynInTimeWait};

use super::*;

fn tunables(profile: &str) -> Tunables {
    Profile::by_name(profile).unwrap().tunables().unwrap()
}

#[test]
fn every_setting_of_every_profile_has_a_meaning() {
    for profile in PROFILES {
        let tunables =
            profile.tunables().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
        assert_eq!(tunables.validate(), Ok(()), "{}", profile.name);
        assert_eq!(Profile::by_name(profile.name), Some(profile));
        let differs = tunables != Tunables::default();
        assert_eq!(differs, profile.all_settings().next().is_some(), "{}", profile.name);
    }
    assert_eq!(Profile::by_name("plan9"), None);
}

#[test]
fn every_setting_says_where_it_is_from_and_differs_for_that() {
    for profile in PROFILES {
        for setting in profile.settings {
            let Setting { name, source, .. } = setting;
            assert!(source.len() > 6 && !source.ends_with('.'), "{}, {name}", profile.name);
            // Setting by setting: one of the base that is set to what it was anyway says nothing.
            let base = profile.base.map_or_else(Tunables::default, |base| base.tunables().unwrap());
            let mut with = base.clone();
            with.set_by_name(name, setting.value).unwrap();
            assert!(profile.base.is_none() || with != base, "{}, {name}", profile.name);
        }
        let names = profile.settings.iter().map(|it| it.name);
        let twice = names.enumerate().find(|(at, name)| {
            profile.settings.iter().take(*at).any(|before| before.name == *name)
        });
        assert_eq!(twice, None, "{}", profile.name);
    }
}

#[test]
fn what_is_not_the_default_has_a_setting_that_says_so() {
    for profile in PROFILES {
        let tunables = profile.tunables().unwrap();
        for info in TUNABLES {
            let differs = info.value(&tunables) != info.value(&Tunables::default());
            let says = profile.setting_of(info).is_some();
            assert!(says || !differs, "{}, {}", profile.name, info.name.text);
        }
    }
}

#[test]
fn variant_is_named_by_base_and_by_changed_settings() {
    for profile in PROFILES {
        let (of, _) = profile.name.split_once('+').unwrap_or((profile.name, ""));
        if of != profile.name {
            assert_eq!(profile.base.map(|base| base.name), Some(of));
        }
        let Some(base) = profile.base else { continue };
        assert_eq!(Profile::by_name(base.name), Some(base));
        let same = profile.tunables() == base.tunables() && profile.locking() == base.locking();
        assert_eq!(same, profile.help.starts_with("The same as"), "{}", profile.name);
    }
    let secs = Duration::from_secs;
    let msl = |profile| tunables(profile).msl_remote;
    assert_eq!((msl("lwip-2.1"), msl("lwip-2.1+msl5s")), (secs(60), secs(5)));
    assert_eq!(tunables("lwip-2.1+msl5s").tw_syn, SynInTimeWait::Never, "its base's");
    assert_eq!((msl("macos-12"), msl("macos-12+msl1s")), (secs(15), secs(1)));
    let ports = |profile| tunables(profile).port_range().unwrap().count();
    assert_eq!((ports("macos-12"), ports("macos-12+wide-ports")), (16_384, 32_768));
    let (tuned, before) = (tunables("illumos-2014-tuned"), tunables("illumos-2011"));
    assert_eq!((tuned.isn_step, before.isn_step), (12_500, 125_000));
    let locking = |profile| Profile::by_name(profile).unwrap().locking();
    assert_eq!(locking("freebsd-9.2"), Locking::All);
    assert_eq!(locking("freebsd-9.2+accept-patch"), Locking::AllButAccept);
    assert_eq!(locking("whimbrel"), Locking::None);
}

#[test]
fn a_profile_is_what_its_settings_say() {
    let freebsd = tunables("freebsd");
    assert_eq!((freebsd.recv_buffer, freebsd.send_buffer), (65_536, 32_768));
    assert_eq!(freebsd.tw_rst, RstInTimeWait::Ignore);
    assert_eq!(freebsd.frag_needed, FragNeeded::Immediate);
    let waits = [0, 1, 2].map(|repeats| freebsd.syn_retry.wait(repeats, &freebsd));
    assert_eq!(waits, [1_000, 2_200, 4_200].map(Duration::from_millis));
    assert_eq!(tunables("linux").msl_remote, Duration::from_secs(30));
    let lwip = tunables("lwip-2.1");
    let waits = [0, 1, 5].map(|repeats| lwip.syn_retry.wait(repeats, &lwip));
    assert_eq!(waits, [3; 3].map(Duration::from_secs), "it does not back off");
}
