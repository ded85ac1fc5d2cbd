from pydantic import BaseModel, ConfigDict


class TextDigest(BaseModel):
    """Kind text.digest: the SHA-256 of a text in UTF-8."""

    model_config = ConfigDict(extra="forbid")

    text: str
