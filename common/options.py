"""The base of every options class: frozen, kebab-case outside, unknown keys refused."""

from pydantic import BaseModel, ConfigDict

Scalar = bool | int | float | str
"""What an option holds."""


def kebab(name: str) -> str:
    """`local_steps` -> `local-steps`."""
    return name.replace("_", "-")


class Options(BaseModel):
    """Options a person may set; a field's default and meaning stand where it is declared, and nowhere else."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True)
