"""What the owner of the data allows, read from a TOML file next to the data; the server's wishes are requests."""

import tomllib
from pathlib import Path

from pydantic import Field, ValidationError

from common.algorithms import METHODS, Method
from common.config import TASKS, RunConfig, Task
from common.errors import ConfigError, RefusedError
from common.options import Options


class Policy(Options):
    """The owner's terms. A missing file means these defaults."""

    methods: tuple[Method, ...] = METHODS
    """Methods this client takes part in."""

    tasks: tuple[Task, ...] = TASKS
    """Tasks this client takes part in."""

    allow_counts: bool = False
    """Whether counts over this client's data may leave it in clear, as a model's offset needs."""

    max_local_steps: int = Field(0, ge=0)
    """Most local steps a round, 0 for no limit; a slow machine makes fewer, and the server accounts for it."""

    def check(self, config: RunConfig) -> None:
        """Refuse a run that asks for more than is allowed.

        Raises:
            RefusedError: The reason, free of private data, for the server's log.
        """
        if config.method not in self.methods:
            raise RefusedError(f"method '{config.method}' is not allowed by this client's policy")
        if config.task not in self.tasks:
            raise RefusedError(f"task '{config.task}' is not allowed by this client's policy")
        if config.task_options.count_offset and not self.allow_counts:
            raise RefusedError(
                f"tasks.{config.task}.count-offset needs counts in clear, which this client's policy does not allow"
            )

    def local_steps(self, wished: int) -> int:
        """τ_k, the steps this client makes when the server wishes that many."""
        return min(wished, self.max_local_steps) if self.max_local_steps else wished


def read_policy(path: Path | None) -> Policy:
    """Read a policy file; None gives the defaults.

    Raises:
        ConfigError: The file is missing or says something unknown.
    """
    if path is None:
        return Policy()
    try:
        return Policy.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise ConfigError(f"policy {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        where = f"'{'.'.join(map(str, first['loc']))}': {first['msg']}" if first else str(error)
        raise ConfigError(f"policy {path}: {where}") from None
