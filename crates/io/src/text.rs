//! Numbers and paths for people.

use std::path::Path;

use whimbrel_base::Foreign;

/// A path as people read it: its name may be another user's choice.
pub fn path(path: &Path) -> Foreign<&[u8]> {
    Foreign::new(path.as_os_str().as_encoded_bytes())
}

/// A count with its thousands apart: `612,034`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
