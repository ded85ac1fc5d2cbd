"""The sections of the settings: what may be set, and what is refused."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _pointer(text: str) -> str:
    if re.fullmatch("(/([^~]|~[01])*)?", text) is None:
        raise ValueError("wanted a JSON pointer such as /data/id, in which ~ is written ~0")
    return text


Pointer = Annotated[str, AfterValidator(_pointer)]
Ratio = Annotated[float, Field(ge=0, le=1)]
LEAST_FILES = 64
CommaList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Broker(Section):
    url: SecretStr
    hosts: CommaList
    user: str
    password: SecretStr
    vhost: str
    user_file: str
    password_file: str
    tls: bool
    ca_file: str
    cert_file: str
    key_file: str
    heartbeat_seconds: Annotated[int, Field(ge=1, le=3600)]
    connect_timeout_seconds: PositiveFloat
    publish_timeout_seconds: PositiveFloat
    prefetch: Annotated[int, Field(ge=0, le=65535)]
    ack_timeout_seconds: NonNegativeInt
    management_url: str

    @field_validator("management_url")
    @classmethod
    def _is_plain_http(cls, url: str) -> str:
        """Its user is that of the connection: one in here would be shown with the settings, so it is refused."""
        if url and not _is_web(url):
            raise ValueError("wanted http://host:port or https://host:port, without user and password")
        return url

    @field_validator("url")
    @classmethod
    def _is_amqp(cls, url: SecretStr) -> SecretStr:
        """Nothing of the URL is quoted: an unencoded password can end up in any part of it."""
        try:
            parts = urlsplit(url.get_secret_value())
            good = parts.scheme in {"amqp", "amqps"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or parts.fragment:
            raise ValueError(
                "wanted amqp://user:password@host:port/vhost, or amqps://…, with special characters percent-encoded"
            )
        return url

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Nothing of them is quoted either: somebody may have written a password there."""
        if not all(map(_is_host, hosts)):
            raise ValueError("wanted host or host:port, several separated by commas")
        return hosts

    @model_validator(mode="after")
    def _tls_is_on_where_it_is_meant(self) -> Self:
        """Who names certificates must not find out later that nothing was encrypted."""
        if (self.ca_file or self.cert_file or self.key_file) and not self.uses_tls:
            raise ValueError("ca_file, cert_file and key_file need tls = true, or a url that begins with amqps://")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file, the certificate that it belongs to")
        return self

    @property
    def uses_tls(self) -> bool:
        return self.tls or self.url.get_secret_value().startswith("amqps:")


def _is_host(text: str) -> bool:
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port != 0 and parts.netloc == text and "@" not in text
    except ValueError:
        return False


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return good and not set("@?#") & set(url)


class Topology(Section):
    mode: Literal["declare", "check"]
    version: Annotated[int, Field(ge=1, le=1000)]
    delivery_limit: PositiveInt
    delay_tick_ms: Annotated[int, Field(ge=10, le=60_000)]
    delay_levels: Annotated[int, Field(ge=4, le=24)]


class Message(Section):
    missing_key: Literal["refuse", "digest"]
    default_kind: str
    kind_pointer: Pointer
    key_pointer: Pointer
    payload_pointer: Pointer
    max_bytes: PositiveInt
    max_depth: Annotated[int, Field(ge=1, le=500)]


class Store(Section):
    url: SecretStr
    lease_seconds: Annotated[int, Field(ge=3)]
    prepared_statements: bool
    retention_seconds: PositiveInt
    sweep_seconds: PositiveFloat
    stuck_grace_seconds: PositiveInt

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: SecretStr) -> SecretStr:
        if not url.get_secret_value().startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise ValueError("wanted sqlite:///path or postgresql://user:password@host/database")
        return url


class Jobs(Section):
    modules: CommaList
    path: str
    max_result_bytes: PositiveInt
    max_log_bytes: NonNegativeInt
    crash_limit: PositiveInt
    unknown_kind_grace_seconds: NonNegativeInt


class Kind(Section):
    """What the settings say of one kind instead of its handler; what is left out stays as declared."""

    timeout_seconds: PositiveFloat | None = None
    wait_timeout_seconds: NonNegativeFloat | None = None
    max_attempts: PositiveInt | None = None
    backoff_seconds: PositiveFloat | None = None
    backoff_cap_seconds: PositiveFloat | None = None
    jitter: Literal["equal", "full", "none"] | None = None
    budget_seconds: NonNegativeFloat | None = None
    retry_on: CommaList | None = None
    no_retry_on: CommaList | None = None
    failure_ratio: Ratio | None = None


class Cooldown(Section):
    first_seconds: PositiveFloat
    longest_seconds: PositiveFloat
    failure_ratio: Ratio
    window: PositiveInt


class DeadLetters(Section):
    breaker_ratio: Ratio
    breaker_least: PositiveInt
    breaker_window_seconds: PositiveInt
    pause_seconds: PositiveFloat
    longest_pause_seconds: PositiveFloat


def _enough_files(limit: int) -> int:
    """A child has a dozen itself, and some must be left to a job."""
    if limit and limit < LEAST_FILES:
        raise ValueError(f"wanted 0, or at least {LEAST_FILES}")
    return limit


class Pool(Section):
    processes: Annotated[int, Field(ge=0, le=1024)]
    look_ahead: Annotated[int, Field(ge=0, le=64)]
    io_processes: Annotated[int, Field(ge=0, le=1024)]
    io_concurrency: Annotated[int, Field(ge=1, le=10_000)]
    io_stall_seconds: Annotated[float, Field(ge=0.5)]
    memory_limit: Annotated[int, Field(ge=-1)]
    cpu_limit_seconds: Annotated[float, Field(ge=0)]
    open_files: Annotated[int, AfterValidator(_enough_files)]
    leftovers: Literal["replace", "keep"]
    kill_grace_seconds: PositiveFloat
    recycle_jobs: NonNegativeInt
    recycle_age_seconds: Annotated[float, Field(ge=0)]
    recycle_memory: NonNegativeInt
    start_timeout_seconds: PositiveFloat


class Http(Section):
    host: str
    port: Annotated[int, Field(ge=1, le=65535)]


class Shutdown(Section):
    drain_seconds: Annotated[float, Field(ge=0)]


class Faults(Section):
    crash_at: Literal["", "after_claim", "after_run", "after_confirm", "after_commit", "before_ack"]
    crash_after: PositiveInt


class Log(Section):
    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "console"]
