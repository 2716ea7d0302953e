"""Registry of tasks or methods: built-in entries and entry points of packages, imported on first use."""

import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, distributions, entry_points
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Generic, TypeVar

from common.errors import ConfigError, FedloomError, PackageError
from common.text import hint

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""Pattern of the names of tasks and methods."""

FAULTS = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""Errors of code that gets something of another form; the disk or the network causes none of them."""

PACKAGE_REMEDY = "correct or uninstall the package"

EntryT = TypeVar("EntryT")


def load_attribute(path: str) -> Any:
    """Import a module and return its attribute, both named as `module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def imported(path: str) -> Callable[..., Any]:
    """Return a function that calls the one at `module:attribute`, which it imports when it is called."""
    return lambda *arguments, **options: load_attribute(path)(*arguments, **options)


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


def name_package(error: BaseException, suspects: Collection[str] = ()) -> BaseException:
    """Return an unexpected error as one that names the package at fault; without one, the error itself.

    Args:
        error: An error; one of fedloom is returned as it is.
        suspects: Packages in use, which are named if no code of a package raised the error, such as for what it returned.
    """
    if isinstance(error, (FedloomError, KeyboardInterrupt)):
        return error
    points = [point for found in distributions() for point in found.entry_points if point.group.startswith("fedloom.")]
    packages = {point.module.partition(".")[0]: _distribution(point) for point in points}
    lines = [(str(f.f_globals.get("__name__")), number) for f, number in traceback.walk_tb(error.__traceback__)]
    found = [(packages.get(module.partition(".")[0], ""), f"{module}, line {number}") for module, number in lines]
    named = [one for one in found if one[0]]
    if not named and suspects and isinstance(error, FAULTS):
        named = [(" or ".join(suspects), line) for _, line in found]
    if not named:
        return error
    (package, line), kind = named[-1], type(error).__name__
    return PackageError(
        f"{package}: {kind}: {error} ({line}); {PACKAGE_REMEDY}", f"{package}: {kind}; see the client's log"
    )


@contextmanager
def naming_packages(suspects: Collection[str] = ()) -> Iterator[None]:
    """Raise an error of a package's code as a PackageError; see `name_package`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if (named := name_package(error, suspects)) is error:
            raise
        raise named from error


def expect(made: Any, base: type[Any]) -> Any:
    """Return what a package has made, if it is of that class; protocols count as bases.

    Raises:
        TypeError: It is of another class.
    """
    if base not in type(made).__mro__:
        raise TypeError(f"a {type(made).__name__} is no {base.__name__}")
    return made


class Registry(Mapping[str, EntryT], Generic[EntryT]):
    """Objects of one kind by name; listing the names imports nothing, a look-up imports one object.

    Args:
        kind: Noun for messages, such as `task`.
        group: Group of entry points by which other packages add objects.
        base: Class of the objects.
        built_in: Import path `module:ATTRIBUTE` of each built-in object, by name.
        moved: Folder of the package that now provides an object that was built in, by name.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        base: type[Any],
        built_in: Mapping[str, str],
        moved: Mapping[str, str] | None = None,
    ) -> None:
        self._kind, self._group, self._base, self._built_in = kind, group, base, built_in
        self.moved = moved or {}
        self._loaded: dict[str, EntryT] = {}
        self._added: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names: first the built-in names, then those of other packages, sorted.

        Raises:
            ConfigError: Two packages provide a name, or a package provides a built-in name.
        """
        return iter((*self._built_in, *sorted({*self._plugins, *self._added})))

    def __len__(self) -> int:
        return len(self._built_in) + len({*self._plugins, *self._added})

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._plugins or name in self._added

    def __getitem__(self, name: str) -> EntryT:
        """Return the object of that name.

        Raises:
            ConfigError: The name is unknown, its package cannot be imported, or its object is of another kind.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def usable(self) -> Iterator[EntryT]:
        """Iterate over the objects that can be imported; `fedloom tasks` shows the error of the others."""
        for name in self:
            with suppress(ConfigError):
                yield self[name]

    def add(self, entry: EntryT) -> None:
        """Add an object for this process; it replaces one that was added before.

        Raises:
            ConfigError: fedloom or an installed package provides the name, the name is malformed, or the object is of another
                kind.
        """
        name = _declared_name(entry) if isinstance(entry, self._base) else ""
        if not NAME.fullmatch(name):
            raise ConfigError(f"{entry!r:.60} is no {self._base.__name__} with a lower-case name")
        if name in self._built_in or name in self._plugins:
            raise ConfigError(f"{self._kind} '{name}' is provided by {self.origin(name)}; choose another name")
        self._loaded[name] = entry
        self._added.add(name)

    def packages(self, name: str) -> tuple[str, ...]:
        """Return what provides an entry, if it is not fedloom."""
        if name in self._added:
            return (f"{self._kind} '{name}' of this process",)
        return (_distribution(self._plugins[name]),) if name in self._plugins else ()

    def label(self, name: str) -> str:
        """Return an entry with the package that provides it, for messages."""
        return f"{self._kind} '{name}' of {self.origin(name)}"

    def origin(self, name: str) -> str:
        """Return name and version of the distribution that provides an entry."""
        if name in self._added:
            return "this process"
        return _distribution(self._plugins[name]) if name in self._plugins else "fedloom"

    def describe_unknown(self, name: str) -> str:
        """Return the message about an unknown name: where it moved, or the closest name and all names."""
        if name in self.moved:
            package = f"fedloom-studies-{self.moved[name].rpartition('/')[2]}"
            return f"{self._kind} '{name}' moved to the package {package}; pip install ./{self.moved[name]}"
        root = ".".join(self._group.split(".")[:2])
        for point in entry_points(name=name):
            if point.group.startswith(root):
                return f"{self._kind} '{name}' of {_distribution(point)} has no entry point in the group {self._group}; add it"
        closest = hint(name, self, cutoff=0.4) or ";"
        return f"unknown {self._kind} '{name}'{closest} installed: {', '.join(sorted(self))}"

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        plugins: dict[str, EntryPoint] = {}
        for point in entry_points(group=self._group):
            if point.name in self._built_in or point.name in plugins:
                provider = "fedloom" if point.name in self._built_in else _distribution(plugins[point.name])
                raise ConfigError(
                    f"{self._kind} '{point.name}' is provided by {provider} and by {_distribution(point)}; uninstall one"
                )
            plugins[point.name] = point
        return plugins

    def _load(self, name: str) -> EntryT:
        if name in self._built_in:
            entry: EntryT = load_attribute(self._built_in[name])
            return entry
        if name not in self._plugins:
            raise ConfigError(self.describe_unknown(name))
        point = self._plugins[name]
        package = self.label(name)
        try:
            plugin = point.load()
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"{package} cannot be imported ({type(error).__name__}: {error}); correct or uninstall it"
            ) from error
        if not isinstance(plugin, self._base):
            found = f"{point.value} is a {type(plugin).__name__}, not a {self._base.__name__}"
            raise ConfigError(f"{package}: {found}; {PACKAGE_REMEDY}")
        if not NAME.fullmatch(name) or _declared_name(plugin) != name:
            raise ConfigError(
                f"{package}: {point.value} is named '{_declared_name(plugin)}'; use one lower-case name in both"
            )
        checked: EntryT = plugin
        return checked


def _declared_name(entry: Any) -> str:
    return str(getattr(entry, "name", "") or getattr(getattr(entry, "spec", None), "name", ""))


@cache
def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
