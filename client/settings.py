"""What the owner of a client decides, from the node's configuration or `FEDLOOM_*` variables; the server has no say here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from flwr.app import Context
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from client.data.tables.schema import Dates, Decimal, Dialect
from common.errors import ConfigError
from common.options import Scalar, kebab


def _within(shard: str) -> str:
    k, _, parts = shard.partition("/")
    if shard and not int(k) < int(parts):
        raise ValueError(f"of {parts} parts the first is 0 and the last {int(parts) - 1}")
    return shard


def _columns(lines: str) -> str:
    Dialect.of(lines.splitlines())
    return lines


class ClientSettings(BaseSettings):
    """Settings of one client."""

    model_config = SettingsConfigDict(
        env_prefix="FEDLOOM_",
        env_prefix_target="all",  # without it NAME, DATA and POLICY of the environment would count too
        frozen=True,
        extra="ignore",
        alias_generator=kebab,
        populate_by_name=True,
    )

    data: str = "demo"
    """A data file or folder; `demo`, or `demo:START-STOP`, is made on the spot; of sessions, `FILE::TEST` holds TEST out."""

    shard: Annotated[str, StringConstraints(pattern=r"^(\d+/\d+)?$"), AfterValidator(_within)] = ""
    """`k/K`: use the k-th (from 0) of K parts of the data only; empty for all."""

    columns: Annotated[str, AfterValidator(_columns)] = ""
    """Titles of columns in the data's tables, a line `NAME=TITLE` each; default: the usual ones."""

    decimal: Decimal = "auto"
    """Decimal mark in the data's tables: `auto`, `point` or `comma`."""

    dates: Dates = "auto"
    """Form of times in the data's tables: `auto`, `iso`, `unix`, `excel`, `dmy` or `mdy`."""

    data_seed: int = 0
    """Seed of the demo data."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]*$")] = ""
    """Stable public name of this client; empty takes the node's id."""

    state_dir: Path = Field(default_factory=lambda: Path.home() / ".fedloom" / "state")
    """Where private state is kept."""

    ledgers: Path | None = None
    """Folder of privacy ledgers, where they cannot lie beside the data."""

    policy: Path | None = None
    """The owner's policy file (TOML)."""

    @classmethod
    def given(cls, options: Mapping[str, Scalar]) -> Self:
        """Settings from options by their names, the environment's where there is none.

        Raises:
            ConfigError: A value is not what its option takes.
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
    def of(cls, context: Context) -> Self:
        """Settings of the node that a message arrived at."""
        return cls.of_node(context.node_config, f"node-{context.node_id}")

    @classmethod
    def of_node(cls, node_config: Mapping[str, Scalar], default_name: str) -> Self:
        """Settings from a node's configuration, which wins over the environment.

        In Flower's simulation the k-th of K virtual nodes takes the k-th shard.
        """
        given: dict[str, Any] = dict(node_config)
        part, parts = given.pop("partition-id", None), given.pop("num-partitions", None)
        if part is not None:
            given = {"shard": f"{part}/{parts}", "name": f"client-{part}", **given}
        settings = cls.given(given)
        return settings if settings.name else settings.model_copy(update={"name": default_name})

    @property
    def dialect(self) -> Dialect:
        """Columns and forms of the data's tables."""
        return Dialect.of(self.columns.splitlines(), self.decimal, self.dates)

    @property
    def part(self) -> tuple[int, int]:
        """(k, K) of `shard`; (0, 1) for all."""
        k, _, parts = (self.shard or "0/1").partition("/")
        return int(k), int(parts)
