"""The headers of a message in the dead-letter queue. Its body and properties are as the producer sent them."""

from pydantic import BaseModel, ConfigDict, Field, Json

from schemas import headers
from schemas.amqp import Milliseconds
from schemas.codes import Code


class FailedAttempt(BaseModel):
    model_config = ConfigDict(frozen=True)

    attempt: int
    at: Milliseconds
    code: Code
    error: str
    pod: str


class DeadLetterHeaders(BaseModel):
    """The producer's own headers are there as well."""

    model_config = ConfigDict(frozen=True, extra="allow", validate_by_name=True)

    letter_id: str | None = Field(None, alias=headers.DEAD_ID, description="its name in the command consumer dead")
    code: Code = Field(alias=headers.CODE)
    error_type: str = Field(alias=headers.ERROR_TYPE)
    error_message: str = Field(alias=headers.ERROR_MESSAGE)
    error_traceback: str = Field("", alias=headers.ERROR_TRACEBACK)
    attempt: int = Field(1, ge=1, alias=headers.ATTEMPT)
    generation: int = Field(0, ge=0, alias=headers.GENERATION)
    origin_queue: str = Field(alias=headers.ORIGIN)
    first_failed_at: Milliseconds = Field(alias=headers.FIRST_FAILED)
    dead_at: Milliseconds = Field(alias=headers.DEAD_AT)
    history: Json[tuple[FailedAttempt, ...]] = Field(
        (), alias=headers.HISTORY, description="JSON text, oldest first; absent where it didn't fit"
    )
    dropped_headers: str | None = Field(None, alias=headers.DROPPED)
