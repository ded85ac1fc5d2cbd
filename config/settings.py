"""One validated, frozen object made of default.toml, the file named by CONSUMER_CONFIG, and the environment.

This is the only reader of the environment. `load` raises ValueError with one sentence per fault, without secrets.
"""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from config.sections import (
    Broker,
    Cooldown,
    DeadLetters,
    Faults,
    Http,
    Jobs,
    Kind,
    Log,
    Message,
    Pool,
    Shutdown,
    Store,
    Topology,
)

PREFIX = "CONSUMER_"
FILE_VARIABLE = "CONSUMER_CONFIG"
DEFAULTS = Path(__file__).with_name("default.toml")
MAY_HOLD_SECRETS = {("url",), ("hosts",), ("password",), ("management_url",)}
NAME = r"^[A-Za-z0-9_-]{1,60}$"
WORDS = r"^[A-Za-z0-9_-]{1,60}(\.[A-Za-z0-9_-]{1,60})*$"
FORMS = {
    NAME: "wanted at most 60 letters, digits, - and _",
    WORDS: "wanted words of at most 60 letters, digits, - and _, with dots between them",
}
NO_SECTION = ("model_type", "dict_type")
"""What pydantic calls a fault where a section was wanted."""
LONGEST = 180
"""Characters of a queue's short name: AMQP leaves 255 to its full name, and to its way through the ladder."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    queue: Annotated[str, Field(pattern=WORDS, max_length=LONGEST)]
    namespace: Annotated[str, Field(pattern=NAME)]
    broker: Broker
    topology: Topology
    message: Message
    store: Store
    jobs: Jobs
    kinds: dict[str, Kind]
    cooldown: Cooldown
    dead_letters: DeadLetters
    pool: Pool
    http: Http
    shutdown: Shutdown
    faults: Faults
    log: Log

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,  # noqa: ARG003 the four are what pydantic-settings passes
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, the file over the defaults; they are merged deeply."""
        named = os.environ.get(FILE_VARIABLE)
        paths = [Path(named), DEFAULTS] if named else [DEFAULTS]
        return (env_settings, *(TomlConfigSettingsSource(settings_cls, path) for path in paths))


def load() -> Settings:
    """Read, merge and validate the three sources."""
    named = os.environ.get(FILE_VARIABLE)
    if named and not (Path(named).is_file() and os.access(named, os.R_OK)):
        raise ValueError(f"the file named by {FILE_VARIABLE} can't be read: {named}")
    known = {variable((name,)) for name in Settings.model_fields} | {FILE_VARIABLE}
    unknown = [n for n in sorted(os.environ) if n.startswith(PREFIX) and n.split("__")[0] not in known]
    if unknown:
        raise ValueError("; ".join(_unknown(_path(name), name) for name in unknown))
    try:
        return Settings()
    except ValidationError as error:
        raise ValueError("; ".join(_sentence(fault) for fault in error.errors())) from None
    except SettingsError as error:
        raise ValueError(_no_section(str(error).split('"')[1])) from None
    except ValueError as error:
        raise ValueError(f"the file named by {FILE_VARIABLE} is not valid TOML: {named}: {error}") from None


class _Kinds(BaseModel):
    kinds: dict[str, Kind] = Field(default_factory=dict)


def kinds_in(file: str | Path | None) -> dict[str, Kind]:
    """The section [kinds] of a file, if there is one: for tests of handlers, in which the environment has no say."""
    if file is None:
        return {}
    try:
        return _Kinds.model_validate(tomllib.loads(Path(file).read_text("utf-8"))).kinds
    except OSError as error:
        raise ValueError(f"the settings file {file} can't be read: {error.strerror}") from None
    except ValidationError as error:
        raise ValueError("; ".join(_sentence(fault) for fault in error.errors())) from None
    except ValueError as error:
        raise ValueError(f"the settings file {file} is not valid TOML: {error}") from None


def variable(path: tuple[str, ...]) -> str:
    """The environment variable of a setting: ('broker', 'url') → CONSUMER_BROKER__URL."""
    return PREFIX + "__".join(path).upper()


def _sentence(fault: Any) -> str:
    """Name the setting, its variable and what is wanted; quote what was found only where it can't be a secret."""
    path = tuple(str(part) for part in fault["loc"] if not isinstance(part, int))
    name = variable(path[:1] if path[0] == "kinds" else path)
    if fault["type"] == "extra_forbidden":
        return _unknown(".".join(path), name)
    if fault["type"] in NO_SECTION and len(path) == 1:
        return _no_section(path[0])
    wanted = FORMS.get(fault.get("ctx", {}).get("pattern")) or fault["msg"].removeprefix("Value error, ")
    secret = path[-1:] in MAY_HOLD_SECRETS or not isinstance(fault["input"], str | int | float)
    found = "" if secret else f", found {str(fault['input'])[:60]!r}"
    return f"setting {'.'.join(path)} ({name}): {wanted[:1].lower() + wanted[1:]}{found}"


def _unknown(path: str, name: str) -> str:
    of_a_kind = f"a kind has {', '.join(Kind.model_fields)}"
    there = of_a_kind if path.startswith("kinds.") else "'consumer config show' lists those that there are"
    return f"setting {path} ({name}) is unknown; {there}"


def _path(name: str) -> str:
    return name.removeprefix(PREFIX).lower().replace("__", ".")


def _no_section(section: str) -> str:
    name = variable((section,))
    return f"setting {section} ({name}): wanted a section, as JSON; one setting of it goes by {name}__NAME"
