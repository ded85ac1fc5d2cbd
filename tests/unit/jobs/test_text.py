from hashlib import sha256

import pytest

from consumer.jobs.text import digest
from consumer.testing import run


@pytest.mark.parametrize("text", ["", "abc", "naïve 😀"])
def test_a_text_is_digested_as_utf8(text: str) -> None:
    encoded = text.encode()
    assert run(digest, {"text": text}).result == {
        "sha256": sha256(encoded).hexdigest(),
        "bytes": len(encoded),
        "characters": len(text),
    }


def test_unknown_fields_are_refused() -> None:
    run(digest, {"text": "a", "algorithm": "md5"}).expect("invalid_payload")
