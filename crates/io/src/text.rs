//! Formats numbers and paths for messages.

use std::path::Path;

use whimbrel_base::Foreign;

/// Returns a path in a form that is safe to print: another user may have chosen its name.
pub fn path(path: &Path) -> Foreign<&[u8]> {
    Foreign::new(path.as_os_str().as_encoded_bytes())
}

/// Formats a count with groups of thousands: `612,034`.
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
