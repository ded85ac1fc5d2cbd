from hashlib import sha256

import pytest
from pydantic import ValidationError

from consumer.jobs.text import Text, digest


@pytest.mark.parametrize("text", ["", "abc", "naïve 😀"])
def test_a_text_is_digested_as_utf8(text: str) -> None:
    encoded = text.encode()
    assert digest(Text(text=text)) == {
        "sha256": sha256(encoded).hexdigest(),
        "bytes": len(encoded),
        "characters": len(text),
    }


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        Text.model_validate({"text": "a", "algorithm": "md5"})
