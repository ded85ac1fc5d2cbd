"""A user's module whose neighbours have the names of ours."""

from typing import Any

import config
import schemas
from consumer import job


@job("names", timeout=10)
def names(payload: Any) -> list[str]:
    return [config.VALUE, schemas.VALUE]  # type: ignore[attr-defined]
