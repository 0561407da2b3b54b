//! Sizes as they are typed: `128`, `64k`, `1M`, `2G`, in powers of 1,024.

/// The number of bytes that `text` means.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        Some(b't' | b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = Some(digits)
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or("give bytes, as in 128, 64k, 1M or 2G (powers of 1,024)")?;
    number.checked_mul(1 << shift).ok_or_else(|| "more than 16 EiB: use less".into())
}

/// A number of bytes, at least one.
pub(crate) fn some(text: &str) -> Result<u64, String> {
    parse(text).and_then(|bytes| match bytes {
        0 => Err("give at least one byte".into()),
        _ => Ok(bytes),
    })
}

/// Two sizes with a comma between them: of a request, and of its response.
pub(crate) fn pair(text: &str) -> Result<(u64, u64), String> {
    let (request, answer) = text.split_once(',').ok_or("give REQ,RESP, as in 1,1 or 64,16k")?;
    Ok((parse(request.trim())?, parse(answer.trim())?))
}

/// `bytes` for people: `1.5 MiB`.
pub(crate) fn display(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut scaled = bytes as f64 / 1024.0;
    if scaled < 1.0 {
        return format!("{bytes} B");
    }
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while scaled >= 1024.0
        && let Some(next) = units.next()
    {
        scaled /= 1024.0;
        unit = next;
    }
    format!("{scaled:.1} {unit}")
}

#[cfg(test)]
mod tests;
