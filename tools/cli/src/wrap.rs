//! Text for people within [`WIDTH`] columns, as every terminal and every mail has them.

/// The most columns of a line of text for people, wherever it goes.
pub(crate) const WIDTH: usize = 80;

/// `text` in lines of at most [`WIDTH`] columns, all but the first indented by `indent` blanks. A
/// longer word stays whole.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut wrapped = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            wrapped.push('\n');
        }
        wrap_line(line, indent, &mut wrapped);
    }
    if text.ends_with('\n') {
        wrapped.push('\n');
    }
    wrapped
}

fn wrap_line(line: &str, indent: usize, wrapped: &mut String) {
    let (mut begin, mut column) = (0, 0);
    // Blanks within a line stay: they are columns of a table.
    for piece in line.split_inclusive(' ') {
        let width = piece.trim_end().chars().count();
        if column > begin && column + width > WIDTH {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            (begin, column) = (indent, indent);
        }
        wrapped.push_str(piece);
        column += piece.chars().count();
    }
}

/// The first clause of `text` that makes sense alone, within `columns` if possible: its first sentence,
/// or the part of it up to the end of a clause.
pub(crate) fn first_clause(text: &str, columns: usize) -> &str {
    let sentence = text.find(". ").map_or(text, |end| &text[..end]).trim_end_matches('.');
    if sentence.chars().count() <= columns {
        return sentence;
    }
    let end = sentence.char_indices().nth(columns).map_or(sentence.len(), |(end, _)| end);
    let room = &sentence[..end];
    let clause = CLAUSE_ENDS.iter().filter_map(|mark| room.rfind(mark)).max();
    clause.filter(|end| *end >= columns / 3).map_or(sentence, |end| &sentence[..end])
}

/// Marks that end a clause.
const CLAUSE_ENDS: [&str; 4] = [": ", "; ", ", ", " ("];

#[cfg(test)]
mod tests;
