import gzip
import tracemalloc
import zlib

import pytest

from consumer.core.content import ContentError, media_type, unpack
from schemas.codes import Code

BODY = b'{"n":100}'
CAP = 100_000


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(body) + stream.flush()


def gigabyte_of_zeros() -> bytes:
    stream = zlib.compressobj(level=1, wbits=-15)
    block = stream.compress(bytes(2**24)) + stream.flush(zlib.Z_FULL_FLUSH)
    return block * 64 + stream.flush()


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; charset=utf8; version=2",
        "application/json;",
        "application/vnd.example+json",
        "application/cloudevents+json; charset=utf-8",
    ],
)
def test_json_in_utf_8_and_no_content_type_are_accepted(content_type: str | None) -> None:
    assert media_type(content_type).endswith("json")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/x-python-serialize",
        "application/cloudevents-batch+json",
        "image/svg+json",
        "application/cloudevents+avro",
        "json",
        ";",
    ],
)
def test_any_other_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(ContentError) as refused:
        media_type(content_type)
    assert refused.value.code is Code.UNSUPPORTED_CONTENT_TYPE


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (BODY, None),
        (BODY, ""),
        (BODY, "identity"),
        (BODY, "utf-8"),
        (gzip.compress(BODY, mtime=0), "gzip"),
        (gzip.compress(BODY, mtime=0), " GZIP "),
        (zlib.compress(BODY), "deflate"),
        (raw_deflate(BODY), "deflate"),
    ],
)
def test_a_body_is_unpacked_by_its_encoding(body: bytes, encoding: str | None) -> None:
    assert unpack(body, encoding, CAP) == BODY


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (BODY, "br", "'br' is not one of gzip, deflate, identity"),
        (BODY, "gzip, gzip", "'gzip, gzip' is not one of"),
        (BODY, "gzip", "is not gzip data"),
        (BODY, "deflate", "deflate data"),
        (b"", "gzip", "ends too early"),
        (gzip.compress(BODY, mtime=0)[:-1], "gzip", "ends too early"),
        (zlib.compress(BODY)[:-1], "deflate", "ends too early"),
        (gzip.compress(BODY, mtime=0) + b"x", "gzip", "bytes follow"),
        (gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), "gzip", "compressed twice"),
        (gzip.compress(BODY, mtime=0)[:-8] + bytes(8), "gzip", "damaged"),
    ],
)
def test_a_body_that_does_not_fit_its_encoding_is_refused_with_the_reason(
    body: bytes, encoding: str, says: str
) -> None:
    with pytest.raises(ContentError, match=says) as refused:
        unpack(body, encoding, CAP)
    assert refused.value.code is Code.UNSUPPORTED_ENCODING


def test_the_limit_is_exact_on_the_wire_and_inflated() -> None:
    at_limit = b"x" * CAP
    assert unpack(at_limit, None, CAP) == at_limit
    assert unpack(gzip.compress(at_limit, mtime=0), "gzip", CAP) == at_limit
    for body, encoding in [(at_limit + b"x", None), (gzip.compress(at_limit + b"x", mtime=0), "gzip")]:
        with pytest.raises(ContentError) as refused:
            unpack(body, encoding, CAP)
        assert refused.value.code is Code.TOO_LARGE


def test_a_gigabyte_of_zeros_is_refused_without_being_held_in_memory() -> None:
    bomb = gigabyte_of_zeros()
    cap = 2 * len(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(ContentError) as refused:
            unpack(bomb, "deflate", cap)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code is Code.TOO_LARGE
    assert peak < 4 * cap
