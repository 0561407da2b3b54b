use super::*;

fn press(code: KeyCode, modifiers: KeyModifiers) -> Option<Intent> {
    intent(&Event::Key(KeyEvent::new(code, modifiers)))
}

#[test]
fn a_key_means_what_the_last_line_says() {
    for (key, meant) in [
        ('q', Intent::Quit),
        ('p', Intent::Pause),
        (' ', Intent::Pause),
        ('+', Intent::More),
        ('=', Intent::More),
        ('-', Intent::Fewer),
        ('s', Intent::Save),
    ] {
        assert_eq!(press(KeyCode::Char(key), KeyModifiers::NONE), Some(meant), "{key:?}");
    }
    assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE), Some(Intent::Quit));
    assert_eq!(press(KeyCode::Char('+'), KeyModifiers::SHIFT), Some(Intent::More));
    assert_eq!(press(KeyCode::Char('x'), KeyModifiers::NONE), None);
    assert_eq!(intent(&Event::Resize(80, 24)), Some(Intent::Redraw));
}

#[test]
fn control_changes_the_meaning_of_a_letter() {
    assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Intent::Quit));
    assert_eq!(press(KeyCode::Char('l'), KeyModifiers::CONTROL), Some(Intent::Redraw));
    for letter in ['q', 'p', 's', 'z'] {
        assert_eq!(press(KeyCode::Char(letter), KeyModifiers::CONTROL), None, "{letter}");
    }
}

#[test]
fn key_release_is_ignored() {
    let key =
        KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(intent(&Event::Key(key)), None);
}

#[test]
fn connections_change_by_one_or_by_a_tenth() {
    for (from, up, down) in [(1, 2, 0), (19, 20, 18), (20, 22, 18), (50, 55, 45), (1000, 1100, 900)]
    {
        assert_eq!((more(from), fewer(from)), (up, down), "{from}");
    }
}
