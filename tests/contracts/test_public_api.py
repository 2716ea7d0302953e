"""The public surface of each layer changes on purpose only: names and signatures are stored.

`python tests/contracts/test_public_api.py` writes the stored list anew.
"""

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

LAYERS = ("common", "client", "server", "deploy")
STORED = Path(__file__).with_name("public_api.json")


def surface(layer: str) -> dict[str, str]:
    """Return name -> signature of all that a layer's `api` promises."""
    module = import_module(f"{layer}.api")
    return {name: signature(getattr(module, name)) for name in sorted(module.__all__)}


def signature(promised: Any) -> str:
    """Return the parameters of a function or class; the kind of anything else."""
    if inspect.isclass(promised) or inspect.isfunction(promised):
        has_none = is_protocol(promised) or issubclass(promised, Exception) if inspect.isclass(promised) else False
        parameters = () if has_none else inspect.signature(promised).parameters.values()
        members = [name for name in vars(promised) if not name.startswith("_")] if is_protocol(promised) else []
        named = [f"{p.name}{'' if p.default is p.empty else '='}" for p in parameters]
        return f"{'class' if inspect.isclass(promised) else 'def'} ({', '.join([*named, *members])})"
    return type(promised).__name__


def is_protocol(promised: Any) -> bool:
    return bool(getattr(promised, "_is_protocol", False))


@pytest.mark.parametrize("layer", LAYERS)
def test_what_is_promised_is_what_is_stored(layer: str) -> None:
    assert surface(layer) == json.loads(STORED.read_text("utf-8"))[layer]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_surface_holds_imports_only(layer: str) -> None:
    source = Path(import_module(f"{layer}.api").__file__ or "").read_text("utf-8")
    body = source.partition('"""\n')[2].partition("__all__")[0]
    assert all(line.startswith(("from ", "    ", ")", "")) for line in body.splitlines())
    assert "def " not in body


if __name__ == "__main__":
    STORED.write_text(json.dumps({layer: surface(layer) for layer in LAYERS}, indent=1) + "\n", "utf-8")
