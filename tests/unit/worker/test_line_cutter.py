import pytest

from consumer.worker.line_cutter import LINE_LIMIT, LineCutter


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (["a\nb\n"], ["a", "b"]),
        (["a", "b\n", "c"], ["ab", "c"]),
        (["a\r\n\n \t\nb  \n"], ["a", "b"]),
        (["  indented\n"], ["  indented"]),
        (["10 %\r20 %\r", "30 %"], ["30 %"]),
        (["x" * LINE_LIMIT + "yz\n"], ["x" * LINE_LIMIT, "yz"]),
        (["x" * (LINE_LIMIT // 2)] * 5, ["x" * LINE_LIMIT, "x" * (LINE_LIMIT // 2), "x" * LINE_LIMIT]),
        ([], []),
    ],
)
def test_what_is_written_becomes_lines(written: list[str], lines: list[str]) -> None:
    cutter = LineCutter()
    cut = [line for text in written for line in cutter.feed(text.encode())]
    assert cut + cutter.finish() == lines
    assert cutter.finish() == []


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    cutter = LineCutter()
    for _ in range(1000):
        cutter.feed(b"x" * 100)
    assert len("".join(cutter.finish())) <= LINE_LIMIT
