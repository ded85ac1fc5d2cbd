"""`text.digest`: the SHA-256 of a text, and how long it is."""

from hashlib import sha256

from pydantic import BaseModel, ConfigDict

from consumer import job


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str


@job("text.digest", timeout=30)
def digest(payload: Text) -> dict[str, str | int]:
    encoded = payload.text.encode()
    return {"sha256": sha256(encoded).hexdigest(), "bytes": len(encoded), "characters": len(payload.text)}
