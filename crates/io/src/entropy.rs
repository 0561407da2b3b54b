//! Keys from the system's entropy.

use whimbrel_tcp::table::Secrets;

/// The system gave no entropy.
#[derive(Debug, thiserror::Error)]
#[error(
    "no keys: getrandom(2) failed ({0}); without them sequence numbers and ports could be guessed. \
     Allow the system call, or provide /dev/urandom"
)]
pub struct EntropyError(getrandom::Error);

/// Fresh keys for one stack. Blocks only in the first moments after the machine's boot.
pub fn secrets() -> Result<Secrets, EntropyError> {
    let mut octets = [0; 96];
    getrandom::fill(&mut octets).map_err(EntropyError)?;
    Ok(Secrets::from_entropy(octets))
}

#[cfg(test)]
mod tests;
