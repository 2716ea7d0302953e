"""Check the repository's house rules; print one line a finding, `path:line: text`, and end with status 1 if there are any.

`python tools/check.py [NAME...]` runs all checks, or those with these names. Their data are in tools/check.toml and
tools/flower_imports.toml.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import check_code, check_pages, check_texts

CHECKS: tuple[Callable[[], Iterable[str]], ...] = (*check_code.CHECKS, *check_texts.CHECKS, *check_pages.CHECKS)


def findings(names: Sequence[str] = ()) -> list[str]:
    """Return the findings of all checks, or of those with these names."""
    chosen = [check for check in CHECKS if not names or check.__name__ in names]
    if not chosen:
        return [f"no check {', '.join(names)}; choose from: {', '.join(check.__name__ for check in CHECKS)}"]
    return [finding for check in chosen for finding in sorted(set(check()))]


def main() -> int:
    """Print the findings, and return the exit status."""
    found = findings(sys.argv[1:])
    print(*found, sep="\n") if found else None
    if found:
        print(f"{len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
