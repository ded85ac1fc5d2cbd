"""A job as a CloudEvent 1.0 in structured mode."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from schemas.amqp import PERSISTENT, Amqp, Kind, Payload, Traceparent, to_json


class CloudEvent(BaseModel):
    """`type` is the kind; `source` and `id` together are the key; `data` is the payload.

    Further attributes are allowed, as CloudEvents has it, and ignored.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, JsonValue]

    specversion: Literal["1.0"] = "1.0"
    type: Kind
    source: str = Field(min_length=1, pattern=r"^[^\x00-\x20\x7f-\x9f]*$", description="A URI reference")
    id: str = Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")
    time: AwareDatetime | None = None
    datacontenttype: Literal["application/json"] | None = None
    traceparent: Traceparent | None = None
    data: Payload

    def to_amqp(self) -> Amqp:
        event = self.model_dump(mode="json", exclude_none=True, exclude={"data"})
        properties = {"content_type": "application/cloudevents+json", "delivery_mode": PERSISTENT}
        return Amqp(to_json({**event, "data": self.data}), properties)
