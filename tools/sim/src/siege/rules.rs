//! Draws a tunable and a value for it from the table of tunables, so that a new one is tried at
//! once.

use whimbrel_base::tunables::Unit;
use whimbrel_tcp::TUNABLES;
use whimbrel_tcp::tunables::TunableInfo;

use super::script::Script;

/// Name of a tunable, and a value as typed; not all are in range.
pub(super) fn draw(script: &mut Script<'_>) -> (&'static str, String) {
    let info = &TUNABLES[script.below(TUNABLES.len())];
    (info.name.text, value(info, script))
}

fn value(info: &TunableInfo, script: &mut Script<'_>) -> String {
    let words: &[&str] = match info.unit {
        Unit::Switch => &["on", "off"],
        Unit::Choice(choices) => return script.one_of(choices).name.to_owned(),
        Unit::Ports => &["none", "80", "32768-60998", "32768-60999", "1-65535"],
        Unit::Schedule => &["x2", "1s", "3s,6s,12s", "1ms", "100ms,100ms,60s"],
        _ => return number(info, script),
    };
    script.one_of(words).to_owned()
}

/// Either end of the range, or a value between them.
fn number(info: &TunableInfo, script: &mut Script<'_>) -> String {
    let (least, most) = info.range().unwrap_or_default();
    let drawn = script.u8();
    match drawn % 4 {
        0 => least,
        1 => most,
        _ => {
            let between: &[&str] = match info.unit {
                Unit::Bytes => &["64", "500", "536", "1000", "2k", "3000", "16k", "64k", "1M"],
                Unit::Time | Unit::Nanos => {
                    &["1ns", "1us", "1ms", "10ms", "100ms", "1s", "10s", "60s", "3600s"]
                }
                _ => &["1", "2", "3", "4", "5", "8", "16", "100", "1000"],
            };
            between[usize::from(drawn / 4) % between.len()].to_owned()
        }
    }
}
