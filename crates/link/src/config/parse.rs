//! Parses `key=value[,key=value…]`, and quantities. A semicolon separates like a comma.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;
use core::time::Duration;

use whimbrel_wire::tcp::StrippedOptions;

use super::{
    BurstLoss, Change, ConfigError, Forgetting, Forgotten, LinkConfig, Policing, Probability,
    QueueLimit, Reorder, Step, TargetedDrop,
};

/// Parses the text after `mem:`; an empty one describes a perfect link. A key without a value
/// (`jitter=`) keeps its default. `back.` before a key sets it for the way back, which otherwise is
/// like the way there.
impl FromStr for LinkConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for part in text.split([',', ';']).filter(|part| !part.is_empty()) {
            match part.strip_prefix(BACK) {
                Some(own) => back.push(Setting::read(own, part)?),
                None => there.push(Setting::read(part, part)?),
            }
        }
        let mut config = Self::of(&there)?;
        if !back.is_empty() {
            let of_back = |error| ConfigError::Back(Box::new(error));
            Self::of(&back).map_err(of_back)?;
            let is_own = |it: &Setting<'_>| back.iter().any(|own| own.form.key == it.form.key);
            there.retain(|it| !is_own(it) && it.form.key != "host-delay");
            there.extend(back);
            config.back = Some(Box::new(Self::of(&there).map_err(of_back)?));
        }
        Ok(config)
    }
}

/// A key and its value, as typed.
struct Setting<'t> {
    form: &'static Form,
    value: &'t str,
}

impl<'t> Setting<'t> {
    /// Reads `key=value`, or a key that is on or off; an error names it as `typed`.
    fn read(text: &'t str, typed: &str) -> Result<Self, ConfigError> {
        let (key, value) = text.split_once('=').unwrap_or((text, ON));
        let form = FORMS.iter().find(|form| form.key == key);
        let is_switch = form.is_some_and(|form| form.range == SWITCH);
        if !text.contains('=') && !is_switch {
            return Err(ConfigError::NoValue(typed.into()));
        }
        let typed_key = typed.split_once('=').map_or(typed, |(key, _)| key);
        let form = form.ok_or_else(|| ConfigError::UnknownKey(typed_key.into()))?;
        Ok(Self { form, value })
    }
}

impl LinkConfig {
    /// The default, with these settings.
    fn of(settings: &[Setting<'_>]) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (place, Setting { form, value }) in settings.iter().enumerate() {
            let before = settings.get(..place).unwrap_or_default();
            if form.key != AT && before.iter().any(|other| other.form.key == form.key) {
                return Err(ConfigError::Repeated(form.key));
            }
            if !value.is_empty() && (form.take)(&mut config, value).is_none() {
                return Err(form.refuse(value));
            }
        }
        config.check()?;
        Ok(config)
    }

    /// Checks values that depend on each other.
    fn check(&self) -> Result<(), ConfigError> {
        let has_steps_of_rate =
            self.steps.iter().any(|step| matches!(step.change, Change::Rate(_)));
        if self.rate.is_none() && !has_steps_of_rate {
            if let Some(bytes @ 1..) = self.ecn {
                return Err(ConfigError::NeedsRate { key: "ecn", value: bytes.to_string() });
            }
            if self.ack_filter {
                return Err(ConfigError::NeedsRate { key: "ack-filter", value: ON.into() });
            }
        }
        if self.rate.is_none()
            && let QueueLimit::Bdp(thousandths) = self.queue
        {
            let value = alloc::format!("{}bdp", f64::from(thousandths) / 1_000.0);
            return Err(ConfigError::NeedsRate { key: "queue", value });
        }
        let too_long = |step: &&Step| matches!(step.change, Change::Mtu(mtu) if mtu > self.mtu);
        if let Some(Step { at, change: Change::Mtu(step) }) = self.steps.iter().find(too_long) {
            return Err(ConfigError::StepTooLong { at: *at, step: *step, mtu: self.mtu });
        }
        if let Some(Policing { rate, burst }) = self.police
            && burst < u64::from(self.mtu)
        {
            return Err(ConfigError::BurstTooShort { rate, burst, mtu: self.mtu });
        }
        match self.queue {
            QueueLimit::Bytes(bytes) if bytes < u64::from(self.mtu) => {
                Err(ConfigError::QueueTooShort { bytes, mtu: self.mtu })
            }
            _ => Ok(()),
        }
    }
}

/// Form of one key: its values in words, and its code.
struct Form {
    key: &'static str,
    range: &'static str,
    example: &'static str,
    take: Take,
}

/// Sets what a key is for to the value in a text, if that is one.
type Take = fn(&mut LinkConfig, &str) -> Option<()>;

impl Form {
    fn refuse(&self, value: &str) -> ConfigError {
        let &Self { key, range, example, .. } = self;
        ConfigError::BadValue { key, value: String::from(value), range, example }
    }
}

const FORMS: [Form; 22] = [
    form("rate", "1 to 1000G bits a second (k, M, G)", "45M", |config, text| {
        set(&mut config.rate, rate(text).map(Some))
    }),
    form("delay", TIME, "35ms", |config, text| set(&mut config.delay, duration(text))),
    form("host-delay", TIME, "12ms", |config, text| set(&mut config.host_delay, duration(text))),
    form("jitter", TIME, "2ms", |config, text| set(&mut config.jitter, duration(text))),
    form("loss", CHANCE, "0.1%", |config, text| set(&mut config.loss, probability(text))),
    form("burst-loss", "ENTER:LEAVE[:LOSS], each 0% to 100%", "0.5%:20%", |config, text| {
        set(&mut config.burst_loss, burst_loss(text).map(Some))
    }),
    form("drop", DROPS, "10+20/2", |config, text| set(&mut config.drop, drops(text))),
    form("reorder", "CHANCE[:EXTRA], 0% to 100% and 0s to 3600s", "1%:5ms", |config, text| {
        set(&mut config.reorder, reorder(text).map(Some))
    }),
    form("dup", CHANCE, "0.5%", |config, text| set(&mut config.duplicate, probability(text))),
    form("corrupt", CHANCE, "0.01%", |config, text| set(&mut config.corrupt, probability(text))),
    form("ecn", "0 to 1G bytes (k, M, G)", "30k", |config, text| {
        set(&mut config.ecn, bytes(text).map(Some))
    }),
    form("queue", QUEUES, "100p", |config, text| set(&mut config.queue, queue(text))),
    form("mtu", "68 to 65535 bytes", "1500", |config, text| set(&mut config.mtu, mtu(text))),
    form("police", POLICING, "10M:30k", |config, text| {
        set(&mut config.police, policing(text).map(Some))
    }),
    form("ack-batch", TIME, "5ms", |config, text| set(&mut config.ack_batch, duration(text))),
    form("ack-filter", SWITCH, ON, |config, text| set(&mut config.ack_filter, switch(text))),
    form("ecn-bleach", SWITCH, ON, |config, text| set(&mut config.ecn_bleach, switch(text))),
    form("accecn-strip", SWITCH, ON, |config, text| set(&mut config.accecn_strip, switch(text))),
    form("strip", OPTIONS, "wscale+sack", |config, text| set(&mut config.strip, stripped(text))),
    form("forget", FORGETTING, "60s", |config, text| {
        set(&mut config.forget, forgetting(text).map(Some))
    }),
    form("inject", "rst", "rst", |config, text| {
        set(&mut config.inject_rst, (text == RST).then_some(true))
    }),
    form(AT, STEPS, "10s:rate=1M", |config, text| {
        let step = step(text)?;
        let is_ordered = config.steps.last().is_none_or(|last| last.at <= step.at);
        (is_ordered && config.steps.len() < MOST_STEPS).then(|| config.steps.push(step))
    }),
];

const fn form(key: &'static str, range: &'static str, example: &'static str, take: Take) -> Form {
    Form { key, range, example, take }
}

/// Sets a place to what was read, if it could be read.
fn set<T>(place: &mut T, read: Option<T>) -> Option<()> {
    read.map(|value| *place = value)
}

/// The prefix of keys of the way back.
const BACK: &str = "back.";
/// The key that may be given several times.
const AT: &str = "at";
const ON: &str = "on";
/// Values of a key that may also stand without one.
const SWITCH: &str = "on or off";
const TIME: &str = "0s to 3600s (s, ms, us, ns)";
const CHANCE: &str = "0% to 100%";
const DROPS: &str = "N[/K][+N[/K]…], segments 1 to 100000 and transmissions 1 to 255, at most 64";
const QUEUES: &str = "1p to 1000000p packets, 1 to 1G bytes (k, M, G), or 0.001bdp to 1000bdp";
const POLICING: &str = "RATE:BURST, 1 to 1000G bits per second and 1 to 1G bytes (k, M, G)";
const OPTIONS: &str = "wscale, sack, timestamps, or several joined by +";
const FORGETTING: &str = "TIME[:rst], more than 0s to 3600s (s, ms, us, ns)";
const RST: &str = "rst";
const STEPS: &str = "TIME:rate=RATE, TIME:delay=TIME, TIME:mtu=BYTES, TIME:down or TIME:up (0s to 3600s, in the \
                     order of time, at most 1000)";
const MOST_STEPS: usize = 1_000;

fn switch(value: &str) -> Option<bool> {
    match value {
        ON => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn stripped(value: &str) -> Option<StrippedOptions> {
    let mut options = StrippedOptions::default();
    for name in value.split('+') {
        let place = match name {
            "wscale" => &mut options.window_scale,
            "sack" => &mut options.sack,
            "timestamps" => &mut options.timestamps,
            _ => return None,
        };
        *place = true;
    }
    Some(options)
}

fn forgetting(value: &str) -> Option<Forgetting> {
    let (time, then) = match value.split_once(':') {
        Some((time, RST)) => (time, Forgotten::Reset),
        Some(_) => return None,
        None => (value, Forgotten::Lost),
    };
    let after = duration(time).filter(|after| !after.is_zero())?;
    Some(Forgetting { after, then })
}

fn mtu(value: &str) -> Option<u16> {
    integer(value).filter(|mtu| *mtu >= 68)
}

fn policing(value: &str) -> Option<Policing> {
    let (speed, burst) = value.split_once(':')?;
    let burst = bytes(burst).filter(|burst| *burst > 0)?;
    Some(Policing { rate: rate(speed)?, burst })
}

fn step(value: &str) -> Option<Step> {
    let (at, change) = value.split_once(':')?;
    let change = match change.split_once('=').unwrap_or((change, "")) {
        ("rate", speed) => Change::Rate(rate(speed)?),
        ("delay", time) => Change::Delay(duration(time)?),
        ("mtu", longest) => Change::Mtu(mtu(longest)?),
        ("down", "") => Change::Down,
        ("up", "") => Change::Up,
        _ => return None,
    };
    Some(Step { at: duration(at)?, change })
}

fn rate(value: &str) -> Option<u64> {
    let rate = with_suffix(value, &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])?;
    (1..=1_000_000_000_000).contains(&rate).then_some(rate)
}

pub(super) fn duration(value: &str) -> Option<Duration> {
    // The longer suffixes first: "ms" also ends in "s".
    let units = [("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)];
    let (number, unit) =
        units.iter().find_map(|(suffix, unit)| Some((value.strip_suffix(suffix)?, *unit)))?;
    let nanos = decimal(number, unit)?;
    (nanos <= 3_600_000_000_000).then_some(Duration::from_nanos(nanos))
}

fn probability(value: &str) -> Option<Probability> {
    let millionths = decimal(value.strip_suffix('%')?, u64::from(Probability::SCALE) / 100)?;
    let millionths = u32::try_from(millionths).ok().filter(|it| *it <= Probability::SCALE)?;
    Some(Probability::from_millionths(millionths))
}

fn burst_loss(value: &str) -> Option<BurstLoss> {
    let mut parts = value.splitn(3, ':').map(probability);
    let (enter, leave) = (parts.next()??, parts.next()??);
    Some(BurstLoss { enter, leave, loss: parts.next().unwrap_or(Some(Probability::ONE))? })
}

fn reorder(value: &str) -> Option<Reorder> {
    let (chance, extra) = match value.split_once(':') {
        Some((chance, extra)) => (chance, duration(extra)?),
        None => (value, Duration::from_millis(1)),
    };
    Some(Reorder { chance: probability(chance)?, extra })
}

fn queue(value: &str) -> Option<QueueLimit> {
    if let Some(products) = value.strip_suffix("bdp") {
        let thousandths = u32::try_from(decimal(products, 1_000)?).ok()?;
        return (1..=1_000_000).contains(&thousandths).then_some(QueueLimit::Bdp(thousandths));
    }
    if let Some(packets) = value.strip_suffix('p') {
        let packets = integer(packets).filter(|it| (1..=1_000_000).contains(it))?;
        return Some(QueueLimit::Packets(packets));
    }
    bytes(value).filter(|bytes| *bytes > 0).map(QueueLimit::Bytes)
}

fn bytes(value: &str) -> Option<u64> {
    let bytes = with_suffix(value, &[("k", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)])?;
    (bytes <= 1 << 30).then_some(bytes)
}

fn drops(value: &str) -> Option<Vec<TargetedDrop>> {
    let drops: Vec<TargetedDrop> = value.split('+').map(targeted_drop).collect::<Option<_>>()?;
    (drops.len() <= 64).then_some(drops)
}

fn targeted_drop(value: &str) -> Option<TargetedDrop> {
    let (segment, transmission) = value.split_once('/').unwrap_or((value, "1"));
    let segment = integer(segment).filter(|it| (1..=100_000).contains(it))?;
    let transmission = integer(transmission).filter(|it| *it >= 1)?;
    Some(TargetedDrop { segment, transmission })
}

fn with_suffix(value: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    let found =
        suffixes.iter().find_map(|(suffix, unit)| Some((value.strip_suffix(suffix)?, *unit)));
    let (number, unit) = found.unwrap_or((value, 1));
    decimal(number, unit)
}

/// A number of digits alone: no sign, unlike [`str::parse`].
fn integer<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A decimal number times `unit`, rounded down; at most nine decimal places.
fn decimal(number: &str, unit: u64) -> Option<u64> {
    let (whole, places) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || places.len() > 9 || !digits(whole) || !digits(places) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10u128.pow(places.len() as u32);
    let fraction = if places.is_empty() { 0 } else { places.parse::<u64>().ok()? };
    let fraction = u128::from(fraction) * u128::from(unit) / scale;
    whole.checked_add(u64::try_from(fraction).ok()?)
}
