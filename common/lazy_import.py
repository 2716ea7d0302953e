"""Packages that are imported at their first use: a model of sums answers without PyTorch."""

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class _Postponed(ModuleType):
    """Module without content, that is executed when an attribute of it is read.

    The standard library's `LazyLoader` executes it at the next `import`, which reads `__spec__`.
    """

    def __getattr__(self, name: str) -> Any:
        object.__setattr__(self, "__class__", ModuleType)
        if (spec := self.__spec__) and spec.loader:
            self.__path__ = spec.submodule_search_locations or []
            spec.loader.exec_module(self)
        return getattr(self, name)


def postpone(package: str) -> None:
    """Let later imports of a package give a module that is executed when an attribute of it is read."""
    if package not in sys.modules and (spec := find_spec(package)):
        module = module_from_spec(spec)
        del module.__path__  # an import of a submodule reads it
        object.__setattr__(module, "__class__", _Postponed)
        sys.modules[package] = module
