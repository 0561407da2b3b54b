//! A case in words: its advice, its symptoms, and its glossary.

use super::markup::{escaped, prose};
use super::node::Node;
use super::page::part;

/// Advice for users who have the problem.
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
    part("Symptoms and cause", &paragraphs.collect::<String>())
}

pub(super) const LEAD: &str = "\
<p class=\"lead\">Known failures of TCP, the part of a system that opens connections and transfers \
bytes. Each case runs with the settings of the system that failed, and with Whimbrel's: the same \
load over the same network, packet by packet.</p>\n\
<p><b>Whimbrel</b> is a TCP/IP stack for programs written in Rust: a library that speaks TCP inside \
a program, in place of the operating system, and the command <code>whimbrel</code>, which made this \
page. To install it, in a clone of its repository: <code>cargo install --locked \
<span class=\"whole\">--path tools/cli</span></code></p>\n\
<ul class=\"key\"><li class=\"old-ink\"><b>✕ broken line</b>: the settings that failed</li>\
<li class=\"own-ink\"><b>✓ solid line</b>: Whimbrel by default</li>\
<li class=\"other-ink\"><b>△ dotted line</b>: other settings</li></ul>\n";

pub(super) const WORDS: &str = "\
<details class=\"glossary\"><summary>Glossary: SYN, TIME-WAIT, sequence number, window and others\
</summary>\n\
<dl class=\"words\">\n\
<div><dt>Connection and port</dt><dd>Two addresses and two ports identify a connection. The side \
that opens it takes a free port for its end (an ephemeral port). There are only some ten thousand \
to one server.</dd></div>\n\
<div><dt>SYN, handshake</dt><dd>The packet that asks to open a connection. The answer is SYN+ACK, \
and an ACK answers that: the handshake. Without an answer the SYN is sent again, after longer and \
longer waits.</dd></div>\n\
<div><dt>ACK, FIN, RST</dt><dd>ACK confirms what has arrived. FIN ends one direction: each side \
sends one. RST, a reset, says that there is no such connection, or ends it at once.</dd></div>\n\
<div><dt>TIME-WAIT</dt><dd>After the end of a connection, the side that closed first remembers it \
for a while, so that no late packet is mistaken for one of a new connection on the same \
ports.</dd></div>\n\
<div><dt>MSL</dt><dd>The maximum segment lifetime: the longest time that a packet is assumed to \
stay in the network. TIME-WAIT lasts twice that, for both directions.</dd></div>\n\
<div><dt>Sequence number</dt><dd>Each byte has one. A connection begins at its initial sequence \
number. A packet with a lower number than expected looks like an old one. The numbers wrap after \
some four billion.</dd></div>\n\
<div><dt>Timestamp</dt><dd>Most packets carry the sender's clock. It tells new packets from old \
ones if sequence numbers cannot.</dd></div>\n\
<div><dt>Window</dt><dd>The receiver's free space. A sender sends no more than that without an \
answer.</dd></div>\n\
<div><dt>Challenge ACK</dt><dd>The answer to a packet that may be forged: it repeats the expected \
numbers, so that a genuine sender can prove itself.</dd></div>\n\
<div><dt>RFC</dt><dd>A standard of the internet, by its number.</dd></div>\n</dl></details>\n";
