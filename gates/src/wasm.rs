//! A WebAssembly module that asks nothing of its host: no import section.
//!
//! WebAssembly 2.0, 5.5: a module is eight bytes of preamble, then sections, each an id byte, its
//! size as an unsigned LEB128, and that many bytes.

use crate::Failure;
use crate::finding::Finding;

/// The imports of the module in `file`.
pub(crate) fn judge_file(file: &str) -> Result<Vec<Finding>, Failure> {
    let bytes = std::fs::read(file)?;
    let imports = imports_of(&bytes).ok_or_else(|| format!("{file} is no WebAssembly module"))?;
    println!("{file}: {} bytes, {} imports", bytes.len(), imports.len());
    Ok(imports.iter().map(|import| imported(file, import)).collect())
}

fn imported(file: &str, import: &str) -> Finding {
    let message = format!("the pure crates import nothing, and here is `{import}`");
    Finding::of_file(file, message, "find who asks for it with `cargo tree`, and pass it in")
}

/// `module.name` of each import, or nothing if the bytes are no module.
fn imports_of(bytes: &[u8]) -> Option<Vec<String>> {
    let mut reader = Reader { rest: bytes.strip_prefix(PREAMBLE)? };
    let mut imports = Vec::new();
    while !reader.rest.is_empty() {
        let id = reader.byte()?;
        let size = reader.number()?;
        let section = Reader { rest: reader.bytes(size)? };
        if id == IMPORT_SECTION {
            imports.extend(import_names(section)?);
        }
    }
    Some(imports)
}

fn import_names(mut section: Reader<'_>) -> Option<Vec<String>> {
    let count = section.number()?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(format!("{}.{}", section.name()?, section.name()?));
        section.skip_description()?;
    }
    Some(names)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// An unsigned LEB128 of at most 32 bits.
    fn number(&mut self) -> Option<usize> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok();
            }
        }
        None
    }

    fn name(&mut self) -> Option<String> {
        let length = self.number()?;
        Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }

    /// Skips the description of an import: a function's type, the limits of a table or memory, or a
    /// global.
    fn skip_description(&mut self) -> Option<()> {
        match self.byte()? {
            0x00 => self.number().map(drop),
            0x01 => self.byte().and_then(|_reference| self.skip_limits()),
            0x02 => self.skip_limits(),
            0x03 => self.bytes(2).map(drop),
            0x04 => self.byte().and_then(|_attribute| self.number()).map(drop),
            _ => None,
        }
    }

    fn skip_limits(&mut self) -> Option<()> {
        let has_maximum = self.byte()? & 1 == 1;
        self.number()?;
        if has_maximum { self.number().map(drop) } else { Some(()) }
    }
}

/// `\0asm`, version 1.
const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";
const IMPORT_SECTION: u8 = 2;

#[cfg(test)]
mod tests;
