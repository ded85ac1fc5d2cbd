from pydantic import BaseModel


class TextDigest(BaseModel):
    """Kind text.digest: the SHA-256 of a text in UTF-8."""

    text: str
