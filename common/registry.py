"""Registries of tasks and methods: built-in entries and entry points of installed packages, imported when looked up."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from common.errors import ConfigError
from common.options import hint

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""Form of the name of a task or a method."""

EntryT = TypeVar("EntryT")


class Registry(Mapping[str, EntryT], Generic[EntryT]):
    """Objects of one kind by name; listing imports none, a look-up imports one.

    Args:
        kind: Noun for messages, such as `task`.
        group: Group of entry points by which other packages add objects.
        base: Class of the objects.
        built_in: Import path `module:ATTRIBUTE` of each built-in object, by name.
    """

    def __init__(self, kind: str, group: str, base: type[Any], built_in: Mapping[str, str]) -> None:
        self._kind, self._group, self._base, self._built_in = kind, group, base, built_in
        self._loaded: dict[str, EntryT] = {}

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names: built-in ones first, then those of packages, sorted.

        Raises:
            ConfigError: Two packages provide a name, or a package provides a built-in one.
        """
        return iter((*self._built_in, *sorted(self._plugins)))

    def __len__(self) -> int:
        return len(self._built_in) + len(self._plugins)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._plugins

    def __getitem__(self, name: str) -> EntryT:
        """Return the object of that name.

        Raises:
            ConfigError: The name is unknown, its package cannot be imported, or its object is none of this kind.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def origin(self, name: str) -> str:
        """Return the distribution that provides the name, with its version."""
        return _distribution(self._plugins[name]) if name in self._plugins else "fedloom"

    def unknown(self, name: str) -> str:
        """Return the message about an unknown name, with the nearest one."""
        nearest = hint(name, self, cutoff=0.4) or ";"
        return f"unknown {self._kind} '{name}'{nearest} installed: {', '.join(sorted(self))}"

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        plugins: dict[str, EntryPoint] = {}
        for point in entry_points(group=self._group):
            if taken := "fedloom" if point.name in self._built_in else _named(plugins.get(point.name)):
                raise ConfigError(
                    f"{self._kind} '{point.name}' is provided by {taken} and by {_distribution(point)}; uninstall one"
                )
            plugins[point.name] = point
        return plugins

    def _load(self, name: str) -> EntryT:
        if name in self._built_in:
            module, _, attribute = self._built_in[name].partition(":")
            entry: EntryT = getattr(import_module(module), attribute)
            return entry
        if name not in self._plugins:
            raise ConfigError(self.unknown(name))
        point = self._plugins[name]
        package = f"{self._kind} '{name}' of {_distribution(point)}"
        try:
            found = point.load()
        except Exception as error:
            raise ConfigError(
                f"{package} cannot be imported ({type(error).__name__}: {error}); uninstall it"
            ) from error
        if not isinstance(found, self._base):
            raise ConfigError(f"{package}: {point.value} is a {type(found).__name__}, not a {self._base.__name__}")
        if not NAME.fullmatch(name) or _own_name(found) != name:
            raise ConfigError(
                f"{package}: {point.value} is named '{_own_name(found)}'; use one lower-case name in both"
            )
        loaded: EntryT = found
        return loaded


def _own_name(entry: Any) -> str:
    return str(entry.name if hasattr(entry, "name") else entry.spec.name)


def _named(point: EntryPoint | None) -> str:
    return _distribution(point) if point else ""


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
