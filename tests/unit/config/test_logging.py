from config.logging import bounded, escaped


def test_what_a_job_prints_can_not_drive_a_terminal() -> None:
    event = {"event": "job said", "text": "\x1b[2Jred\x9b\r and\ttabs\nand lines\u2028ä", "attempt": 1}
    assert escaped(None, "", event) == {
        "event": "job said",
        "text": "\\x1b[2Jred\\x9b\\r and\ttabs\nand lines\\u2028ä",
        "attempt": 1,
    }


def test_long_texts_are_cut() -> None:
    assert bounded(None, "", {"text": "x" * 2001, "short": "y"}) == {"text": "x" * 2000 + "…", "short": "y"}
