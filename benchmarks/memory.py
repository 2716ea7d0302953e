"""What a study has computed: one that was cut short goes on where it was, and its page can be made again without its data."""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RUNS = "runs"
"""Where a study's published results hold everything that its page was made of."""

Json = Any
"""What `json` reads and writes."""


class Memory:
    """Results by key: in a cache folder, a file each, and in the published results, from which a fresh clone goes on.

    Args:
        folder: The cache; it also holds what runs write while they last.
        published: A results file, which need not exist.
        compute: Whether to compute what neither holds.
    """

    def __init__(self, folder: Path, published: Path, *, compute: bool) -> None:
        self.folder, self._compute = folder, compute
        folder.mkdir(parents=True, exist_ok=True)
        self._published: Mapping[str, Json] = _read(published).get(RUNS, {}) if published.exists() else {}
        self.used: dict[str, Json] = {}
        """Everything that was asked for and known: what a page is made of."""

    @classmethod
    def of(cls, study: str, options: Namespace) -> "Memory":
        """As a study's options ask for it."""
        return cls(options.cache, options.out / f"{study}.json", compute=not options.table_only)

    def recall(self, key: str, make: Callable[[], Json], gist: Callable[[Json], str] = lambda _: "") -> Json | None:
        """What is known under that key, or what `make` makes, which is known from then on; None if it must not be made.

        Args:
            key: A file's name.
            make: Computes something that JSON can hold, and that is not None.
            gist: A word on what was made, to print.
        """
        path = self.folder / f"{key}.json"
        if path.exists():
            found = _read(path)
        elif key in self._published:
            found = self._published[key]
        elif self._compute:
            started = time.perf_counter()
            found = _kept(path, make())
            print(f"{key}: {time.perf_counter() - started:.0f} s {gist(found)}".rstrip(), flush=True)
        else:
            return None
        self.used[key] = found
        return found


def _kept(path: Path, made: Json) -> Json:
    """What a reader of the file will see, also of one that was killed while writing."""
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(made), "utf-8")
    aside.replace(path)
    return _read(path)


def _read(path: Path) -> Json:
    return json.loads(path.read_text("utf-8"))
