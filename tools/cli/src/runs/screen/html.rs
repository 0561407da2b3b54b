//! The screen as a self-contained page: it fetches nothing, and text is escaped.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// The page of `buffer`, under this title, with a last line of this text.
pub(super) fn page(buffer: &Buffer, title: &str, caption: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<pre>{}</pre>\n<p>{}</p>\n</body>\n</html>\n",
        escaped(title),
        lines(buffer),
        escaped(caption)
    )
}

/// Each line of the screen, cells of one look together.
fn lines(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut last: Option<CellStyle> = None;
        let mut line = String::new();
        for x in buffer.area.left()..buffer.area.right() {
            let cell = &buffer[(x, y)];
            let look = CellStyle::of(cell);
            if last.as_ref() != Some(&look) {
                line += if last.is_some() { "</span>" } else { "" };
                let _ = write!(line, "<span{look}>");
                last = Some(look);
            }
            line += &escaped(cell.symbol());
        }
        let _ = writeln!(text, "{line}</span>");
    }
    text
}

/// Style of a cell.
#[derive(PartialEq, Eq)]
struct CellStyle {
    classes: Vec<&'static str>,
    /// Filled part of a cell with a block: browsers leave gaps between the letters of such bars, but
    /// not between backgrounds.
    filled: Option<(&'static str, u8)>,
}

impl CellStyle {
    fn of(cell: &Cell) -> Self {
        let colour = match cell.fg {
            Color::Cyan => Some("c"),
            Color::Green => Some("g"),
            Color::Yellow => Some("y"),
            Color::Red => Some("r"),
            _ => None,
        };
        let modifiers = [(Modifier::BOLD, "b"), (Modifier::DIM, "d"), (Modifier::REVERSED, "v")];
        let modifiers =
            modifiers.into_iter().filter(|(modifier, _)| cell.modifier.contains(*modifier));
        let classes = colour.into_iter().chain(modifiers.map(|(_, class)| class)).collect();
        Self { classes, filled: filled(cell.symbol()) }
    }
}

impl std::fmt::Display for CellStyle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut classes = self.classes.clone();
        classes.extend(self.filled.map(|_| "f"));
        if !classes.is_empty() {
            write!(f, " class=\"{}\"", classes.join(" "))?;
        }
        let Some((side, eighths)) = self.filled else { return Ok(()) };
        let share = f32::from(eighths) * 12.5;
        write!(f, " style=\"--f:linear-gradient(to {side},currentColor {share}%,transparent 0)\"")
    }
}

/// From which side, and how many eighths.
fn filled(symbol: &str) -> Option<(&'static str, u8)> {
    let place = |symbols: &str| symbols.chars().position(|known| symbol.starts_with(known));
    let up = place("▁▂▃▄▅▆▇█").map(|place| ("top", place as u8 + 1));
    up.or_else(|| place("▏▎▍▌▋▊▉").map(|place| ("right", place as u8 + 1)))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Dark as most terminals are, and light in print.
const STYLE: &str = "\
:root{color-scheme:dark;--bg:#14171c;--fg:#d8dee6;--c:#5fc9d8;--g:#7fc77f;--y:#e2bd5f;--r:#ef7b76}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#1c2127;--c:#00798a;--g:#2a7a2a;--y:#8a6500;--r:#b3261e}}
body{margin:0;padding:2rem;background:var(--bg);color:var(--fg);-webkit-print-color-adjust:exact;\
print-color-adjust:exact}
pre,p{width:max-content;margin:0 auto;font:15px/18px ui-monospace,\"DejaVu Sans Mono\",Menlo,\
Consolas,monospace}
p{margin-top:1.5rem;opacity:.6;font-size:13px}
.b{font-weight:bold}.d{opacity:.55}
.c{color:var(--c)}.g{color:var(--g)}.y{color:var(--y)}.r{color:var(--r)}
.v{background:currentColor;-webkit-text-fill-color:var(--bg)}
.f{display:inline-block;height:18px;vertical-align:top;background:var(--f);\
-webkit-text-fill-color:transparent}
";

#[cfg(test)]
mod tests;
