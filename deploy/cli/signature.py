"""Signatures of commands, assembled from options that are declared elsewhere."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of each dataclass among its parameters as options of their own."""
    own = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}

    def run(**given: Any) -> None:
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**made, **given)

    parameters = [q for p in own for q in (_fields(groups[p.name]) if p.name in groups else [p])]
    return with_parameters(run, parameters, command)


def with_parameters(
    run: Callable[..., None], parameters: Iterable[inspect.Parameter], described: Callable[..., None]
) -> Callable[..., None]:
    """Return the function under other parameters, and with the name and the help of another one."""
    run.__name__, run.__doc__ = described.__name__, described.__doc__
    signature = inspect.Signature([p.replace(kind=KEYWORD) for p in parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect.signature, and so by Typer
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [inspect.Parameter(f.name, KEYWORD, default=f.default, annotation=hints[f.name]) for f in fields(kind)]
