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
fn with_control_a_letter_means_something_else() {
    assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Intent::Quit));
    assert_eq!(press(KeyCode::Char('l'), KeyModifiers::CONTROL), Some(Intent::Redraw));
    for letter in ['q', 'p', 's', 'z'] {
        assert_eq!(press(KeyCode::Char(letter), KeyModifiers::CONTROL), None, "{letter}");
    }
}

#[test]
fn a_key_that_is_let_go_means_nothing() {
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
