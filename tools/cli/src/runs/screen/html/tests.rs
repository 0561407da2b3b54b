use ratatui::layout::Rect;
use ratatui::style::Style;

use super::*;

fn page_of(text: &str, style: Style) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
    buffer.set_string(0, 0, text, style);
    page(&buffer, "a <title>", "& what it is")
}

#[test]
fn text_is_escaped_everywhere() {
    let page = page_of("<b>&\"", Style::new());
    assert!(page.contains("<pre><span>&lt;b&gt;&amp;&quot;   </span>\n</pre>"), "{page}");
    assert!(page.contains("<title>a &lt;title&gt;</title>"), "{page}");
    assert!(page.contains("<p>&amp; what it is</p>"), "{page}");
}

#[test]
fn equal_cells_share_a_span_and_blocks_fill_by_eighths() {
    let page = page_of("ab█▃▌", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
    assert!(page.contains("<span class=\"r b\">ab</span>"), "{page}");
    for (filled, symbol) in [("top,currentColor 100%", '█'), ("top,currentColor 37.5%", '▃')] {
        let style = format!("to {filled},transparent 0)\">{symbol}</span>");
        assert!(page.contains(&style), "{style} is not in: {page}");
    }
    assert!(page.contains("to right,currentColor 50%,transparent 0)\">▌"), "{page}");
}

#[test]
fn a_page_fetches_nothing() {
    let page = page_of("whatever", Style::new());
    for part in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(part), "{part}");
    }
}
