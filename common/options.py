"""Base of every options class: frozen, kebab-case keys, unknown keys refused."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

Scalar = bool | int | float | str
"""Value of an option."""


def kebab(name: str) -> str:
    """Convert `local_steps` to `local-steps`."""
    return name.replace("_", "-")


class Options(BaseModel):
    """Options that a user may set; each field declares its default and its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, without what followed from the former ones (`cached_property`)."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(copy).model_fields.keys():
            del copy.__dict__[name]
        return copy


def check_defaults(options: type[Options]) -> None:
    """Check that each option has a valid default, which `--set` can write.

    Raises:
        TypeError: A default is no scalar.
        ValueError: An option has no default, or an invalid one.
    """
    try:
        made = options.model_validate(dict(options()))
    except ValidationError as error:
        found = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise ValueError(f"wrong default of option {found[0]}") from None
    if wrong := next((name for name, value in made if not isinstance(value, Scalar)), ""):
        raise TypeError(f"wrong default of option {wrong}: it is no text, number, true or false")


def leaves(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar]]:
    """Yield the scalars of nested sections with their dotted keys."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
