//! Congestion controls by name, as in `TCP_CONGESTION`.

use std::io;
use std::sync::Arc;

use whimbrel_stack::Shard;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::{AddError, Algorithm, Algorithms, CongestionControl, UnknownAlgorithm};

use crate::cell::Settings;

/// Congestion controls of a stack to be built.
#[derive(Clone, Default, Debug)]
pub(crate) struct CongestionControls {
    all: Algorithms,
    /// A custom one as the default, for connections whose socket, listener and route name none; `None`:
    /// the tunable's.
    usual: Option<Algorithm>,
}

impl CongestionControls {
    /// Adds a custom congestion control.
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

    /// Limit of custom congestion controls.
    const MOST_ADDED: u8 = Settings::CONGESTION_CONTROLS - Algorithm::OURS.len() as u8;

    /// Sets the default congestion control. One of the stack's own is set in the tunables, so that it
    /// can be changed later.
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

    /// Returns the congestion control of this name.
    pub(crate) fn named(&self, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        self.all.named(name)
    }

    /// Registers the custom ones at a shard, under the same numbers.
    pub(crate) fn give_to(&self, shard: &mut Shard) -> Result<(), AddError> {
        for (name, make) in self.all.added() {
            shard.add_congestion_control(name, make.clone())?;
        }
        if let Some(usual) = self.usual {
            shard.set_usual_congestion_control(usual);
        }
        Ok(())
    }

    /// Returns the names, for a stack with these tunables.
    pub(crate) fn names(&self, tunables: &Tunables) -> CongestionNames {
        CongestionNames {
            names: self.all.names().map(Box::from).collect(),
            usual: self.usual.unwrap_or_else(|| tunables.congestion_control.into()),
        }
    }
}

/// Names of a stack's congestion controls.
#[derive(Clone, Debug)]
pub(crate) struct CongestionNames {
    /// Names, indexed by the algorithm's number.
    names: Box<[Box<str>]>,
    /// Default congestion control.
    usual: Algorithm,
}

impl CongestionNames {
    /// Returns the congestion control of this name.
    ///
    /// # Errors
    ///
    /// `NotFound`, as `ENOENT`: no congestion control has this name.
    pub(crate) fn find(&self, name: &str) -> io::Result<Algorithm> {
        let number = self.names.iter().position(|known| **known == *name);
        let number = number.and_then(|number| u8::try_from(number).ok());
        number.map(Algorithm::of_number).ok_or_else(|| {
            let error = UnknownAlgorithm::new(name, self.names.to_vec());
            io::Error::new(io::ErrorKind::NotFound, error)
        })
    }

    /// Returns the name of this one, or of the default.
    pub(crate) fn name(&self, which: Option<Algorithm>) -> String {
        let number = usize::from(which.unwrap_or(self.usual).number());
        self.names.get(number).map(ToString::to_string).unwrap_or_default()
    }
}
