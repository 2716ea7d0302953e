"""The base of every options class: frozen, kebab-case outside, unknown keys refused."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

Scalar = bool | int | float | str
"""What an option holds."""


def kebab(name: str) -> str:
    """`local_steps` -> `local-steps`."""
    return name.replace("_", "-")


class Options(BaseModel):
    """Options a person may set; a field's default and meaning stand where it is declared, and nowhere else."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True)


def leaves(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar]]:
    """The scalars of nested sections, by dotted keys."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def meant(given: str, known: Iterable[str]) -> str:
    """The end of a message about something mistyped: what was probably meant, or what there is."""
    choices = list(known)
    return hint(given, choices, cutoff=0.4) or f"; choose one of {', '.join(choices)}"


def hint(given: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a message about something unknown: what was probably meant, if anything is like it; else nothing."""
    closest = difflib.get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f"; did you mean '{closest[0]}'?" if closest else ""
