//! Text that stays text, and elements of drawings.

use std::fmt::Write;

use whimbrel_base::foreign::is_printed;

/// Text for a page or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            letter if letter != '\n' && !is_printed(letter) => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// Text for a page in which what stands between backticks is code.
pub(crate) fn prose(text: &str) -> String {
    let mut pieces = text.split('`');
    let mut out = escaped(pieces.next().unwrap_or_default());
    while let Some(code) = pieces.next() {
        out += &match pieces.next() {
            Some(behind) => format!("<code>{}</code>{}", escaped(code), escaped(behind)),
            // An unclosed quote stays unchanged.
            None => format!("`{}", escaped(code)),
        };
    }
    out
}

/// A drawing of this width and height, in the units of its letters: it is shown about as large.
#[derive(Debug)]
pub(crate) struct Drawing {
    size: [f64; 2],
    class: &'static str,
    title: String,
    body: String,
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Position of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    at: [f64; 2],
    anchor: Anchor,
}

impl Anchor {
    /// There.
    pub(crate) const fn at(self, at: [f64; 2]) -> Point {
        Point { at, anchor: self }
    }
}

impl Drawing {
    /// An empty drawing; `title` describes it in a sentence.
    pub(crate) fn new(class: &'static str, size: [f64; 2], title: impl Into<String>) -> Self {
        Self { size, class, title: title.into(), body: String::new() }
    }

    /// A text.
    pub(crate) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, text: &str) {
        self.marked(class, anchor.at([x, y]), "", &escaped(text));
    }

    /// An element with attributes, and with markup in it.
    pub(crate) fn marked(
        &mut self,
        class: &str,
        Point { at: [x, y], anchor }: Point,
        attributes: &str,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.put(&format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{attributes}>{text}</text>"
        ));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, [x, y]: [f64; 2], [to_x, to_y]: [f64; 2]) {
        self.put(&format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" \
             y2=\"{to_y:.1}\"/>"
        ));
    }

    /// A box.
    pub(crate) fn rect(
        &mut self,
        class: &str,
        [x, y]: [f64; 2],
        [w, h]: [f64; 2],
        attributes: &str,
    ) {
        self.put(&format!(
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" \
             height=\"{h:.2}\"{attributes}/>"
        ));
    }

    /// A path.
    pub(crate) fn path(&mut self, class: &str, attributes: &str, steps: &str) {
        self.put(&format!("<path class=\"{class}\"{attributes} d=\"{steps}\"/>"));
    }

    fn put(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    /// The element.
    pub(crate) fn finish(self) -> String {
        let Self { size: [w, h], class, title, body } = self;
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg class=\"{class}\" viewBox=\"0 0 {w:.0} {h:.0}\" role=\"img\" \
             aria-label=\"{}\">\n{body}</svg>\n",
            escaped(&title)
        );
        text
    }
}

/// About how wide a text of a drawing is, in its units.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// About the width of a letter of a drawing.
const LETTER: f64 = 6.4;
