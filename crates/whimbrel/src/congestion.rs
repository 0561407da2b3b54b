//! Which congestion control a connection has: by its name, as `TCP_CONGESTION` has it.

use std::io;
use std::sync::Arc;

use whimbrel_stack::Shard;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::{AddError, Algorithm, Algorithms, CongestionControl, UnknownAlgorithm};

use crate::cell::Settings;

/// The congestion controls of a stack that is to be.
#[derive(Clone, Default, Debug)]
pub(crate) struct CongestionControls {
    all: Algorithms,
    /// One of the user's that connections have whose socket, listener and route name none; without, the
    /// tunable's.
    usual: Option<Algorithm>,
}

impl CongestionControls {
    /// Adds one of the user's.
    pub(crate) fn add<C: CongestionControl + 'static>(
        &mut self,
        name: &str,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Result<(), AddError> {
        let is_new = self.all.find(name).is_none();
        if is_new && self.all.names().count() >= usize::from(Settings::CONGESTION_CONTROLS) {
            return Err(AddError::Full { most: Self::MOST_ADDED });
        }
        self.all.add(name, Arc::new(move || Box::new(make()))).map(|_| ())
    }

    /// The most that can be added.
    const MOST_ADDED: u8 = Settings::CONGESTION_CONTROLS - Algorithm::OURS.len() as u8;

    /// Connections whose socket, listener and route name none have this one: of the stack's own by its
    /// rules, so that these can be changed.
    pub(crate) fn set_usual(
        &mut self,
        name: &str,
        tunables: &mut Tunables,
    ) -> Result<(), UnknownAlgorithm> {
        let algorithm = self.named(name)?;
        match algorithm.as_ours() {
            Some(ours) => (tunables.congestion_control, self.usual) = (ours, None),
            None => self.usual = Some(algorithm),
        }
        Ok(())
    }

    /// That of this name.
    pub(crate) fn named(&self, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        self.all.named(name)
    }

    /// A shard has them too, by the same numbers.
    pub(crate) fn give_to(&self, shard: &mut Shard) -> Result<(), AddError> {
        for (name, make) in self.all.added() {
            shard.add_congestion_control(name, make.clone())?;
        }
        if let Some(usual) = self.usual {
            shard.set_usual_congestion_control(usual);
        }
        Ok(())
    }

    /// The names of those of a stack that begins by these rules.
    pub(crate) fn names(&self, tunables: &Tunables) -> CongestionNames {
        CongestionNames {
            names: self.all.names().map(Box::from).collect(),
            usual: self.usual.unwrap_or_else(|| tunables.congestion_control.into()),
        }
    }
}

/// How the congestion controls of a stack are called.
#[derive(Clone, Debug)]
pub(crate) struct CongestionNames {
    /// The name of each algorithm, at the place that its number says.
    names: Box<[Box<str>]>,
    /// That of connections for which nothing else was said.
    usual: Algorithm,
}

impl CongestionNames {
    /// That of this name.
    ///
    /// # Errors
    ///
    /// `NotFound`, as `ENOENT`: there is none.
    pub(crate) fn find(&self, name: &str) -> io::Result<Algorithm> {
        let number = self.names.iter().position(|known| **known == *name);
        let number = number.and_then(|number| u8::try_from(number).ok());
        number.map(Algorithm::of_number).ok_or_else(|| {
            let error = UnknownAlgorithm { name: name.into(), known: self.names.to_vec() };
            io::Error::new(io::ErrorKind::NotFound, error)
        })
    }

    /// The name of this one, or of that of connections for which nothing else was said.
    pub(crate) fn name(&self, which: Option<Algorithm>) -> String {
        let number = usize::from(which.unwrap_or(self.usual).number());
        self.names.get(number).map(ToString::to_string).unwrap_or_default()
    }
}
