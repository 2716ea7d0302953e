"""Settings of a client's owner, from the node's configuration or `FEDLOOM_*` variables.

The server cannot set them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from flwr.app import Context
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from client.data.tables.schema import Dates, Decimal, Dialect
from common.errors import ConfigError
from common.files import expand_home
from common.options import Scalar, kebab


def _check_shard(shard: str) -> str:
    k, _, count = shard.partition("/")
    if shard and not int(k) < int(count):
        raise ValueError(f"use a shard from 0/{count} to {int(count) - 1}/{count}")
    return shard


def _check_columns(lines: str) -> str:
    Dialect.of(lines.splitlines())
    return lines


def _check_tables(text: str) -> str:
    try:
        Dialect.of(**json.loads(text or "{}"))
    except (ValueError, TypeError):
        raise ConfigError(f'tables {text!r}: write options of tables as JSON, such as {{"skip_lines": 2}}') from None
    return text


class ClientSettings(BaseSettings):
    """Settings of one client."""

    model_config = SettingsConfigDict(
        env_prefix="FEDLOOM_",
        env_prefix_target="all",  # without it NAME, DATA and POLICY of the environment would be read too
        frozen=True,
        extra="ignore",
        alias_generator=kebab,
        populate_by_name=True,
    )

    data: str = "demo"
    """Data file or folder; `demo` or `demo:START-STOP` is generated.

    For sessions, `FILE::TEST` holds TEST out.
    """

    shard: Annotated[str, StringConstraints(pattern=r"^(\d+/\d+)?$"), AfterValidator(_check_shard)] = ""
    """Shard `k/K`, the k-th (from 0) of K partitions of the data; empty for all."""

    columns: Annotated[str, AfterValidator(_check_columns)] = ""
    """Titles of columns in the data's tables, a line `NAME=TITLE` each; default: the usual ones."""

    decimal: Decimal = "auto"
    """Decimal mark in the data's tables: `auto`, `point` or `comma`."""

    dates: Dates = "auto"
    """Form of times in the data's tables: `auto`, `iso`, `unix`, `excel`, `dmy`, `mdy`, `ymd` or `order`."""

    tables: Annotated[str, AfterValidator(_check_tables)] = ""
    """Options of reading tables as JSON, such as `{"skip_lines": 2}`; they precede those above."""

    data_seed: int = 0
    """Seed of the demo data."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]*$")] = ""
    """Stable public name of this client; empty for the node's id."""

    key: Path | None = None
    """Private key of the node, which signs uploads to secure sums.

    None: a key in the folder of private state.
    """

    hub: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]*$")] = ""
    """Public name of the hub that hosts this client; empty for a client with a node of its own."""

    state_dir: Path = Field(default_factory=lambda: expand_home(Path("~/.fedloom/state")))
    """Folder of private state."""

    ledgers: Path | None = None
    """Folder of privacy ledgers, if they cannot lie in the folder of the data."""

    policy: Path | None = None
    """The owner's policy file (TOML)."""

    server: str = ""
    """Identity of the server, for the terms that the owner agreed to; `fedloom join` takes that of its CA."""

    device: str = "cpu"
    """Device of local training, as `choose_device` returns it."""

    accept: Literal["", "policy"] = ""
    """`policy` agrees to each run that the policy allows.

    Otherwise the first terms of a server are the most that it can ask for.
    """

    @classmethod
    def from_options(cls, options: Mapping[str, Scalar]) -> Self:
        """Return settings from options by their names; the environment supplies missing ones.

        Raises:
            ConfigError: A value is invalid for its option.
        """
        try:
            return cls(**options)  # type: ignore[arg-type]
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            raise ConfigError(
                f"--{name} {first.get('input')!r}: {first['msg'].removeprefix('Value error, ')}"
            ) from None

    @classmethod
    def from_context(cls, context: Context) -> Self:
        """Return the settings of the node that received a message."""
        return cls.from_node(context.node_config, f"node-{context.node_id}")

    @classmethod
    def from_node(cls, node_config: Mapping[str, Scalar], default_name: str) -> Self:
        """Return the settings from a node's configuration, which precedes the environment.

        In Flower's simulation the k-th of K virtual nodes takes the k-th shard.
        """
        options: dict[str, Any] = dict(node_config)
        part, count = options.pop("partition-id", None), options.pop("num-partitions", None)
        if part is not None:
            options = {"shard": f"{part}/{count}", "name": f"client-{part}", **options}
        settings = cls.from_options(options)
        return settings if settings.name else settings.model_copy(update={"name": default_name})

    @property
    def public_name(self) -> str:
        """Name at the server; that of a hub's client begins with the name of the hub."""
        return f"{self.hub}/{self.name}" if self.hub else self.name

    @property
    def dialect(self) -> Dialect:
        """Columns and forms of the data's tables."""
        apart = {"columns": self.columns.splitlines(), "decimal": self.decimal, "dates": self.dates}
        return Dialect.of(**{**apart, **json.loads(self.tables or "{}")})

    @property
    def part(self) -> tuple[int, int]:
        """Shard as (k, K); (0, 1) for all data."""
        k, _, count = (self.shard or "0/1").partition("/")
        return int(k), int(count)
