"""Time of a run by part of the code, from a profile."""

import cProfile
from collections import defaultdict
from pathlib import Path
from types import CodeType, TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]


class ProfiledParts:
    """Context that adds up the own time of functions by folder of fedloom or by package.

    The profile makes each call of Python dearer, so parts of many short calls are overstated.

    Args:
        is_on: False for a context that measures nothing.
    """

    def __init__(self, *, is_on: bool) -> None:
        self._profile = cProfile.Profile() if is_on else None

    def __enter__(self) -> Self:
        if self._profile:
            self._profile.enable()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._profile:
            self._profile.disable()

    def milliseconds(self, updates: int) -> dict[str, float]:
        """Return part -> milliseconds for each of so many updates, descending; empty if nothing was measured."""
        if self._profile is None:
            return {}
        parts = defaultdict[str, float](float)
        for entry in self._profile.getstats():
            parts[_part_of(entry.code)] += entry.inlinetime
        largest_first = sorted(parts.items(), key=lambda part: -part[1])
        return {part: round(1000 * seconds / updates, 4) for part, seconds in largest_first if seconds}


def _part_of(code: CodeType | str) -> str:
    """Return `client/training`, `torch` or `python`; built-in functions count by what they name."""
    if isinstance(code, str):
        return next((package for package in ("torch", "numpy", "safetensors") if package in code), "python")
    path = Path(code.co_filename)
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1]
    return "/".join(path.relative_to(ROOT).parts[:-1][:2]) if path.is_relative_to(ROOT) else "python"
