"""Plug-in packages of the studies.

`provide` makes their entry points known to this process without an installation;
`pip install ./studies/plugins/NAME` installs one for all processes.
"""

import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Package(Distribution):
    """Distribution with the metadata of a `pyproject.toml`.

    Args:
        folder: Folder of the project.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of metadata; None for any other file."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {self._project['name']}\nVersion: {self._project['version']}\n"
        if filename == "entry_points.txt":
            groups = self._project["entry-points"].items()
            return "\n".join(
                f"[{group}]\n" + "".join(f"{name} = {path}\n" for name, path in points.items())
                for group, points in groups
            )
        return None

    def locate_file(self, path: Any) -> Path:
        """Return the path of a file of the package."""
        return Path(self._folder, path)


class Finder(DistributionFinder):
    """Finder of the packages in this folder; it imports nothing itself."""

    def find_spec(self, *arguments: object) -> None:
        """Return None: modules are found on `sys.path`."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """Yield the packages of that name, or all."""
        name = context.name if context else None
        yield from (package for package in packages() if name in (None, package.metadata["Name"]))


@cache
def packages() -> tuple[Package, ...]:
    """Return all packages."""
    return tuple(Package(path.parent) for path in sorted(FOLDER.glob("*/pyproject.toml")))


def provide() -> None:
    """Make the packages known to this process; call it before registries are listed."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.path += [str(path.parent) for path in sorted(FOLDER.glob("*/pyproject.toml"))]
        sys.meta_path.append(Finder())
