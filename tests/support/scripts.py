"""Scripts of the documentation, which are no package."""

import importlib.util
from types import ModuleType

from tools.pages import ROOT


def load(name: str) -> ModuleType:
    """Import a script in `docs/`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
