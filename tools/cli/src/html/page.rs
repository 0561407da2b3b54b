//! The frame of each page: its head, its style, and its one script, without which the page is complete.

use super::markup::escaped;

/// A page with this title, what leads in, and its sections.
pub(crate) fn page(
    title: &str,
    lead: &str,
    sections: &[String],
    tool: &str,
    command: &str,
) -> String {
    let title = escaped(title);
    let from = match command {
        "" => String::new(),
        command => format!(" Made by <code>{}</code>.", escaped(command)),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; script-src \
         'unsafe-inline'\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<header>\n<h1>{title}</h1>\n{lead}</header>\n<main>\n{}</main>\n\
         <footer><p>{}.{from} Every figure is in the document of \
         <code>--json</code>.</p></footer>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        sections.concat(),
        escaped(tool)
    )
}

/// A section under a heading.
pub(crate) fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{}\">\n<h2>{}</h2>\n{body}</section>\n", escaped(id), escaped(heading))
}

/// A part of a section, under a heading that stays with it on paper.
pub(crate) fn part(heading: &str, body: &str) -> String {
    format!("<div class=\"part\">\n<h3>{}</h3>\n{body}</div>\n", escaped(heading))
}

/// A drawing with its description.
pub(crate) fn captioned(drawing: &str, caption: &str) -> String {
    format!("<figure>\n<figcaption>{caption}</figcaption>\n{drawing}</figure>\n")
}

/// Things side by side where there is room.
pub(crate) fn side_by_side(items: &[String]) -> String {
    format!("<div class=\"columns\">\n{}</div>\n", items.concat())
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
