//! Random keys and station addresses from the system's entropy.

use whimbrel_base::Secrets;
use whimbrel_wire::MacAddress;

/// The system returned no entropy.
#[derive(Debug, thiserror::Error)]
#[error(
    "no keys: getrandom(2) failed ({0}); without them sequence numbers and ports could be guessed. \
     Allow the system call, or provide /dev/urandom"
)]
pub struct EntropyError(getrandom::Error);

/// Returns fresh keys for one stack. Blocks only in the first moments after boot.
pub fn secrets() -> Result<Secrets, EntropyError> {
    let mut bytes = [0; 96];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(Secrets::from_entropy(bytes))
}

/// Returns a seed for a repeatable run.
pub fn seed() -> Result<u64, EntropyError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns a name that cannot be guessed: 32 hexadecimal digits.
pub fn name() -> Result<String, EntropyError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Returns a station address that is very likely unique: 46 random bits, locally administered (IEEE
/// 802, 8.2.2: the second bit of the first byte), of no group (the first).
pub fn station() -> Result<MacAddress, EntropyError> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    bytes[0] = bytes[0] & 0xfc | 0x02;
    Ok(MacAddress(bytes))
}

#[cfg(test)]
mod tests;
