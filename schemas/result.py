"""A job as `consumer status --json` and the API show it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Json

from schemas.amqp import Key, Kind, Milliseconds
from schemas.codes import Code

Status = Literal["pending", "processing", "retrying", "succeeded", "failed", "cancelled"]


class JobError(BaseModel):
    """The last failure, bounded in size."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    code: Code
    error_type: str
    message: str
    traceback: str = ""


class PastFailure(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)

    generation: int
    attempt: int
    at: Milliseconds
    code: str
    error_type: str
    message: str
    owner: str


class JobResult(BaseModel):
    """The state of one job and what came of it. Times are milliseconds since 1970, UTC."""

    # from_attributes: a row of the store can be validated as it is
    model_config = ConfigDict(
        frozen=True,
        from_attributes=True,
        validate_by_name=True,
        json_schema_serialization_defaults_required=True,
    )

    kind: Kind
    key: Key
    status: Status
    attempt: int = Field(ge=1)
    generation: int = Field(0, ge=0, description="How often it was sent back to work from the dead-letter queue")
    crashes: int = Field(0, ge=0, description="Owners that died during the present attempt")
    result: Json[Any] | None = Field(None, description="What the handler returned, once it succeeded")
    error: JobError | None = Field(None, validation_alias="fault")
    history: tuple[PastFailure, ...] = Field((), description="Earlier failures, oldest first")
    owner: str | None = None
    submitted_at: Milliseconds | None = None
    first_seen_at: Milliseconds | None = None
    started_at: Milliseconds | None = None
    finished_at: Milliseconds | None = None
    due_at: Milliseconds | None = None
    deadline: Milliseconds | None = None
    cpu_seconds: float = Field(0.0, ge=0)
    peak_memory: int = Field(0, ge=0, description="Bytes")
