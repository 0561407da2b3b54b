//! What a case is about, in words: what to do about it, what people saw, and the words that takes.

use super::markup::{escaped, prose};
use super::node::Node;
use super::page::part;

/// What somebody needs who has it today.
pub(super) fn advice(case: &Node<'_>) -> String {
    let line = |line: &Node<'_>| {
        let [head, text] = ["head", "text"].map(|key| line.at(key).text());
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(head), prose(text))
    };
    let lines: String = case.at("advice").items().iter().map(line).collect();
    format!("<dl class=\"advice\">\n{lines}</dl>\n")
}

pub(super) fn narrative(case: &Node<'_>) -> String {
    let paragraphs = case.at("story").text().split("\n\n");
    let paragraphs = paragraphs.map(|it| format!("<p>{}</p>\n", prose(&it.replace('\n', " "))));
    part("What people saw, and what was wrong", &paragraphs.collect::<String>())
}

pub(super) const LEAD: &str = "<p class=\"lead\">What people had trouble with in TCP, the part of a system that opens connections and moves bytes. Each case is \
run by the rules of the system that failed, and by those of Whimbrel: the same load over the same network, packet by \
packet.</p>\n\
<p><b>Whimbrel</b> is a TCP/IP stack for programs written in Rust: a library that speaks TCP inside a program, in place of the \
operating system, and the command <code>whimbrel</code>, which made this page. To get it, in a clone of its repository: <code>cargo install \
--locked <span class=\"whole\">--path crates/cli</span></code></p>\n\
<ul class=\"key\"><li class=\"old-ink\"><b>✕ broken line</b>: the rules that failed</li>\
<li class=\"own-ink\"><b>✓ whole line</b>: Whimbrel by default</li>\
<li class=\"other-ink\"><b>△ dotted line</b>: what else was tried</li></ul>\n";

pub(super) const WORDS: &str = "<details class=\"glossary\"><summary>What SYN, TIME-WAIT, sequence number, window and the like mean</summary>\n\
<dl class=\"words\">\n\
<div><dt>Connection and port</dt><dd>A connection is known by two addresses and two ports. The side that opens it takes a free port for \
its end (an ephemeral port); to one server it has only some ten thousands.</dd></div>\n\
<div><dt>SYN, handshake</dt><dd>The packet that asks to open a connection. It is answered by SYN+ACK, and that by an ACK: the handshake. \
If nothing comes back, the SYN is sent again after a while, and then after ever longer ones.</dd></div>\n\
<div><dt>ACK, FIN, RST</dt><dd>ACK says what has arrived. FIN says that no more will be sent: each side sends one. RST, a reset, says that \
there is no such connection, or ends it at once.</dd></div>\n\
<div><dt>TIME-WAIT</dt><dd>After the end of a connection, the side that closed first remembers it for a while, so that a late packet is \
not taken for one of a new connection on the same ports.</dd></div>\n\
<div><dt>MSL</dt><dd>The maximum segment lifetime: how long a packet is assumed to wander about at most. TIME-WAIT lasts twice that, there \
and back.</dd></div>\n\
<div><dt>Sequence number</dt><dd>Each byte has one. A connection begins at a number of its own, the initial sequence number; a packet \
whose number is lower than expected looks like an old one. After some four billion they begin anew.</dd></div>\n\
<div><dt>Timestamp</dt><dd>Most packets carry the sender's clock. It tells new from old where sequence numbers cannot.</dd></div>\n\
<div><dt>Window</dt><dd>How much the receiver has room for. A sender sends no more than that without an answer.</dd></div>\n\
<div><dt>Challenge ACK</dt><dd>The answer to a packet that may be a stranger's: it repeats what is expected, so that an honest sender can \
show that it is one.</dd></div>\n\
<div><dt>RFC</dt><dd>A standard of the internet, by its number.</dd></div>\n</dl></details>\n";
