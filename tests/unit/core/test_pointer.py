import pytest

from consumer.core.pointer import parse, resolve

DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "~1": 9, "0": "zero", "null": None}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/m~0n", 8),
        ("/~01", 9),
        ("/0", "zero"),
        ("/null", None),
    ],
)
def test_a_pointer_finds_what_rfc_6901_says(pointer: str, found: object) -> None:
    assert resolve(DOCUMENT, pointer) == found


@pytest.mark.parametrize(
    "pointer",
    [
        "/nope",
        "/foo/2",
        "/foo/-",
        "/foo/-1",
        "/foo/01",
        "/foo/\u0661",
        "/foo/" + "9" * 5000,
        "/null/x",
        "/0/0",
    ],
)
def test_a_pointer_to_nothing_is_a_lookup_error(pointer: str) -> None:
    with pytest.raises(LookupError):
        resolve(DOCUMENT, pointer)


@pytest.mark.parametrize("pointer", ["foo", "#/foo", "/a~", "/a~2b"])
def test_a_malformed_pointer_is_a_value_error(pointer: str) -> None:
    with pytest.raises(ValueError, match="JSON pointer"):
        parse(pointer)
