//! Profiles: the rules of other stacks, as far as tunables can say them.
//!
//! A profile is a list of tunables, each by a name (mostly the one that it has in that stack), as it
//! would be typed there, and with the source that says so; no branch of the code knows of them. What a
//! stack does and no tunable says is no part of its profile. A variant has the settings of its base and
//! some of its own.
//!
//! A source is a file of the stack that the profile is named for and what stands there, looked up in a copy
//! of that stack or of its next release; a manual; a report of a person who measured; a measurement; or
//! "assumed", with a place where it may be found, if it was not looked up.

use whimbrel_base::tunables::TunableError;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::TunableInfo;

mod freebsd;
mod illumos;
mod linux;
mod lwip;
mod macos;

/// The rules of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The text as typed.
    pub name: &'static str,
    /// Which stack it imitates, in a line for people.
    pub help: &'static str,
    /// The profile whose settings come first, of a variant.
    pub base: Option<&'static Self>,
    /// Settings that differ from its base, or from the defaults.
    pub settings: &'static [Setting],
    /// The locking by which threads of that stack share its connections, if this profile says so.
    pub locking: Option<Locking>,
}

/// A tunable, as a profile has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// A name of the tunable, or of a group of them.
    pub name: &'static str,
    /// The value as typed under this name.
    pub value: &'static str,
    /// The evidence that the stack has it: a file and what stands there, a manual, a report, a measurement; or
    /// "assumed".
    pub source: &'static str,
}

/// The locking by which threads share the connections of a host. No tunable: it is for experiments, which put locks
/// around shards that have none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Locking {
    /// Each thread has connections of its own, and no lock.
    #[default]
    None,
    /// One lock around all connections, for segments, calls and timers, `accept` included.
    All,
    /// As the lock of a listener, but `accept` does without: what it takes was complete before it was published.
    AllButAccept,
}

/// Every profile, the default one first.
pub const PROFILES: &[Profile] = &[
    WHIMBREL,
    lwip::LWIP_2_1,
    lwip::MSL_5S,
    illumos::ILLUMOS_2011,
    illumos::TUNED,
    macos::MACOS_12,
    macos::MSL_1S,
    macos::WIDE_PORTS,
    freebsd::FREEBSD_2_2_5,
    freebsd::FIX,
    freebsd::FREEBSD_9_2,
    freebsd::ACCEPT_PATCH,
    freebsd::FREEBSD_15,
    linux::LINUX_6_18,
    linux::LINUX,
    freebsd::FREEBSD,
];

impl Profile {
    /// The profile of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The defaults, with what differs.
    pub fn tunables(&self) -> Result<Tunables, TunableError> {
        let mut tunables = Tunables::default();
        for (_, setting) in self.all_settings() {
            tunables.set_by_name(setting.name, setting.value)?;
        }
        Ok(tunables)
    }

    /// Its settings, those of its base first, each with whose it is. Of several for one tunable the last
    /// one counts.
    pub fn all_settings(&self) -> impl Iterator<Item = (&'static str, &'static Setting)> {
        self.lineage().into_iter().flatten().flat_map(|profile| {
            let name = profile.name;
            profile.settings.iter().map(move |setting| (name, setting))
        })
    }

    /// The setting that makes this tunable what it is; `None` if it is the default.
    pub fn setting_of(&self, info: &TunableInfo) -> Option<&'static Setting> {
        let says = |setting: &Setting| {
            Tunables::named(setting.name).iter().any(|named| named.field == info.field)
        };
        self.all_settings().map(|(_, it)| it).filter(|it| says(it)).last()
    }

    /// Returns the locking by which threads of that stack share its connections.
    pub fn locking(&self) -> Locking {
        let says = self.lineage().into_iter().flatten().rev().find_map(|profile| profile.locking);
        says.unwrap_or_default()
    }

    /// The base of its base, its base, and itself.
    fn lineage(&self) -> [Option<&Self>; 3] {
        let base = self.base;
        [base.and_then(|base| base.base), base, Some(self)]
    }
}

impl Locking {
    /// Its name, and what it means, for people.
    pub const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::None => ("none", "each thread has connections of its own"),
            Self::All => ("all", "one lock around all connections, which accept takes, too"),
            Self::AllButAccept => {
                ("all-but-accept", "one lock around all connections, but not for accept")
            }
        }
    }
}

const WHIMBREL: Profile = Profile {
    name: "whimbrel",
    help: "This stack's defaults.",
    base: None,
    settings: &[],
    locking: None,
};

/// A setting, from its source.
const fn set(name: &'static str, value: &'static str, source: &'static str) -> Setting {
    Setting { name, value, source }
}

#[cfg(test)]
mod tests;
