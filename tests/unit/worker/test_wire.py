import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.worker.wire import HEADER, META_LIMIT, SMALL, Frame, Parser, Type, WireError, head, whole

FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from([int(kind) for kind in Type]),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=50),
        st.binary(max_size=200),
    ),
    max_size=6,
)


def on_wire(frame: Frame) -> bytes:
    return head(Type(frame.type), frame.job_id, frame.meta, len(frame.body)) + frame.body


@given(FRAMES, st.lists(st.integers(1, 60), max_size=80))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(frames: list[Frame], cuts: list[int]) -> None:
    stream = b"".join(map(on_wire, frames))
    parser = Parser(body_limit=1000)
    seen: list[Frame] = []
    for cut in [*cuts, len(stream)]:
        piece, stream = stream[:cut], stream[cut:]
        if piece:
            seen += parser.feed(piece)
    assert seen == frames


def test_a_long_frame_is_joined_once() -> None:
    """Each piece is kept until the frame is complete: copies that grew with each piece would be quadratic."""
    body = bytes(5_000_000)
    stream = on_wire(Frame(Type.SUCCEEDED, 7, b"", body))
    parser = Parser(body_limit=len(body))
    pieces = [stream[start : start + 1000] for start in range(0, len(stream), 1000)]
    for piece in pieces[:-1]:
        assert [*parser.feed(piece)] == []
    assert len(parser._chunks) >= len(pieces) - 2
    assert [*parser.feed(pieces[-1])] == [Frame(Type.SUCCEEDED, 7, b"", body)]


def test_a_parser_knows_how_much_of_a_long_frame_is_missing() -> None:
    parser = Parser(body_limit=100_000)
    assert parser.missing == SMALL
    assert not [*parser.feed(head(Type.BODY, 1, b"", 100_000) + b"x")]
    assert parser.missing == 99_999


@pytest.mark.parametrize(("meta", "body"), [(0, 1001), (META_LIMIT + 1, 0)])
def test_a_frame_beyond_the_limit_is_refused_before_it_is_read(meta: int, body: int) -> None:
    with pytest.raises(WireError):
        [*Parser(body_limit=1000).feed(HEADER.pack(meta, body, Type.FAILED, 1))]


def test_what_was_said_before_the_nonsense_is_heard() -> None:
    frames = iter(Parser(body_limit=1000).feed(head(Type.READY, 7) + b"\xff" * 100))
    assert next(frames) == Frame(Type.READY, 7, b"", b"")
    with pytest.raises(WireError):
        next(frames)


def test_a_ticket_is_a_frame() -> None:
    frame = Frame(Type.JOB, 2**64 - 1, b"{}", b"[1]")
    assert whole(head(Type.JOB, frame.job_id, b"{}") + b"[1]") == frame
