"""What a body is (content type) and how it is packed (content encoding)."""

import zlib

from schemas.codes import Code

STRUCTURED_EVENT = "application/cloudevents+json"
JSON = "application/json"

_EVENT_BATCH = "application/cloudevents-batch+json"
_UTF8 = frozenset({"utf-8", "utf8"})
_UNPACKED = frozenset({"identity", *_UTF8})
"""Some clients name the charset in the property for the encoding; it does no harm."""
_WINDOWS = {"gzip": (31,), "deflate": (15, -15)}
"""The window bits that zlib wants. Half of the world sends deflate without its zlib frame."""
_GZIP_MAGIC = b"\x1f\x8b"


class ContentError(Exception):
    """A body that can't be read as JSON. The detail may name a property of the message, never its body."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def media_type(content_type: str | None) -> str:
    """Of a body that says it is JSON in UTF-8, or says nothing; else ContentError."""
    if not content_type or content_type == JSON:
        return JSON
    media, *parameters = (part.strip() for part in content_type.lower().split(";"))
    if media != JSON and not (media.startswith("application/") and media.endswith("+json")):
        raise _unsupported(f"content type {_shown(media)} is not JSON")
    if media == _EVENT_BATCH:
        raise _unsupported("a batch of events has no key of its own: publish each event as a message")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in _UTF8:
            raise _unsupported(f"charset {_shown(value.strip())} is not utf-8")
    return media


def unpack(body: bytes, encoding: str | None, cap: int) -> bytes:
    """The body without its compression, if it and what comes out are at most `cap` bytes long."""
    if len(body) > cap:
        raise ContentError(Code.TOO_LARGE, f"the body has {len(body)} bytes, the limit is {cap}")
    name = encoding.strip().lower() if encoding else "identity"
    if name in _UNPACKED:
        return body
    if name not in _WINDOWS:
        raise _encoding(f"content encoding {_shown(name)} is not one of gzip, deflate, identity")
    inflated = _inflate(body, name, cap)
    if inflated.startswith(_GZIP_MAGIC):
        raise _encoding("the body is compressed twice")
    return inflated


def _inflate(body: bytes, name: str, cap: int) -> bytes:
    for window in _WINDOWS[name]:
        stream = zlib.decompressobj(window)
        try:
            inflated = stream.decompress(body, cap + 1)
        except zlib.error:
            continue
        if len(inflated) > cap:
            raise ContentError(Code.TOO_LARGE, f"the body inflates to more than the limit of {cap} bytes")
        if not stream.eof:
            raise _encoding(f"the {name} data ends too early")
        if stream.unused_data:
            raise _encoding(f"bytes follow the {name} data")
        return inflated
    raise _encoding(f"the body is not {name} data, or is damaged")


def _shown(text: str) -> str:
    return ascii(text[:60])


def _unsupported(detail: str) -> ContentError:
    return ContentError(Code.UNSUPPORTED_CONTENT_TYPE, detail)


def _encoding(detail: str) -> ContentError:
    return ContentError(Code.UNSUPPORTED_ENCODING, detail)
