"""Base of every options class: frozen, kebab-case keys, unknown keys refused."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

Scalar = bool | int | float | str
"""Value of an option."""


def kebab(name: str) -> str:
    """Convert `local_steps` to `local-steps`."""
    return name.replace("_", "-")


class Options(BaseModel):
    """Options that a user may set; each field declares its default and its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True)


def leaves(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar]]:
    """Yield the scalars of nested sections with their dotted keys."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def meant(value: str, choices: Iterable[str]) -> str:
    """Return the end of a message on a mistyped value: the closest choice, or all choices."""
    choices = list(choices)
    return hint(value, choices, cutoff=0.4) or f"; choose one of {', '.join(choices)}"


def hint(value: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a message on an unknown value: the closest choice, or nothing if none is close."""
    closest = difflib.get_close_matches(value, list(choices), n=1, cutoff=cutoff)
    return f"; did you mean '{closest[0]}'?" if closest else ""
