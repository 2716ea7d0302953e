"""Compare figures of the product with their limits in tools/ratchet.toml, so that growth is stated and paid for.

`python tools/ratchet.py` compares figures of the files, `--walks` those of tools/walk.py too, `--update` lowers the limits to
today's figures and `--json` prints the figures. The exit status is 1 if a figure exceeds its limit.
"""

import argparse
import ast
import json
import re
import statistics
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.check_code import private_flower_modules

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path(__file__).parent / "ratchet.toml"


@dataclass(frozen=True)
class Tree:
    """Files of a repository.

    Args:
        root: Its folder.
        rooms: Name -> folders and files, as in `[rooms]` of ratchet.toml.
    """

    root: Path
    rooms: Mapping[str, Sequence[str]]

    def files(self, room: str, suffix: str = ".py") -> list[Path]:
        """Return the files of a room."""
        places = [self.root / place for place in self.rooms.get(room, ())]
        found = {path for place in places for path in (place.rglob(f"*{suffix}") if place.is_dir() else [place])}
        return sorted(path for path in found if path.is_file())

    @cached_property
    def parsed(self) -> dict[Path, ast.Module]:
        """Product file -> its syntax tree."""
        return {path: ast.parse(path.read_text("utf-8")) for path in self.files("product")}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Module of the product -> modules of the product that it imports, also inside functions and for types only."""
        modules = {self.module(path): tree for path, tree in self.parsed.items()}
        return {name: {*_imported(tree, modules.keys())} - {name} for name, tree in modules.items()}

    def module(self, path: Path) -> str:
        """Return the dotted name of a file."""
        names = path.relative_to(self.root).with_suffix("").parts
        return ".".join(names[:-1] if names[-1] == "__init__" else names)


def _imported(tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    known_modules = {*modules}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known_modules)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known_modules
            yield from inner
            if node.module in known_modules and len(inner) < len(node.names):
                yield node.module


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one module."""

    def reach(start: str, edges: Mapping[str, set[str]]) -> set[str]:
        found, pending = {start}, [start]
        while pending:
            for target in edges.get(pending.pop(), set()) - found:
                found.add(target)
                pending.append(target)
        return found

    backwards: dict[str, set[str]] = {}
    for source, targets in graph.items():
        for target in targets:
            backwards.setdefault(target, set()).add(source)
    components, done = [], set[str]()
    for name in graph:
        if name not in done:
            component = reach(name, graph) & reach(name, backwards)
            done |= component
            if len(component) > 1:
                components.append(component)
    return components


def outside_importers(tree: Tree, room: str) -> list[str]:
    """Return the modules outside a room that import it."""
    inside = {tree.module(path) for path in tree.files(room)}
    return [name for name, targets in tree.imports.items() if name not in inside and targets & inside]


def bare_names(trees: Iterable[ast.AST], words: Iterable[str]) -> int:
    """Return the number of variables, arguments and functions that have one of these names alone."""
    blocked, count = {*words}, 0
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                count += name.strip("_") in blocked
            case ast.Attribute(attr=name, ctx=ast.Store()):
                count += name.strip("_") in blocked
    return count


def config_keys(tree: Tree) -> tuple[int, int]:
    """Return the number of configuration keys, and of those that neither hand-written pages nor studies name."""
    from common.config.reference import option_references

    generated = {*tree.files("docs_generated", ".md")}
    pages = [path for path in tree.files("docs", ".md") if path not in generated]
    text = "\n".join(path.read_text("utf-8") for path in [*pages, *tree.files("studies")])
    keys = {option.key for option in option_references()}
    return len(keys), sum(key not in text for key in keys)


def measure(tree: Tree, bare: Sequence[str]) -> dict[str, float]:
    """Return the figures of files."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in tree.parsed}
    files = [lines for path, lines in lengths.items() if path.name != "__init__.py"]
    importers = Counter(target for targets in tree.imports.values() for target in targets)
    flower = [path for path, parsed in tree.parsed.items() if private_flower_modules(parsed)]
    stems = sum(path.stem in bare for path in tree.parsed)
    tests = [path.read_text("utf-8") for path in tree.files("tests")]
    lint = [path.read_text("utf-8") for path in tree.files("lint_tests")]
    return {
        "product_lines": sum(lengths.values()),
        "product_files": len(files),
        "files_below_40": sum(lines < 40 for lines in files),
        "files_below_60": sum(lines < 60 for lines in files),
        "median_file": statistics.median(files),
        "modules_with_one_importer": sum(count == 1 for count in importers.values()),
        "secure_importers": len(outside_importers(tree, "secure")),
        "block_importers": len(outside_importers(tree, "blocks")),
        "flower_files": len(flower),
        "flower_rooms": len({path.parent for path in flower}),
        "import_circles": len(circles(tree.imports)),
        "bare_names": bare_names(tree.parsed.values(), bare) + stems,
        "test_lines": sum(len(text.splitlines()) for text in tests),
        "lint_items": sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for text in lint),
    }


def exceeded(figures: Mapping[str, float], limits: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure beyond its limit, and for each without one."""
    lines = []
    for name, value in figures.items():
        is_least = name in limits["least"]
        limit = (limits["least"] if is_least else limits["most"]).get(name)
        advice = f"{'raise the figure or lower' if is_least else 'lower it or raise'} the limit in tools/ratchet.toml"
        if limit is None:
            lines.append(f"{name}: {value:.10g} has no limit; add one to tools/ratchet.toml")
        elif value < limit if is_least else value > limit:
            lines.append(f"{name}: {value:.10g} {'<' if is_least else '>'} {limit:.10g}; {advice} with a reason")
    return lines


def tightened(text: str, figures: Mapping[str, float]) -> str:
    """Return the text of ratchet.toml with limits moved to better figures, and new ones for figures without a limit."""
    limits = tomllib.loads(text)
    for name, value in figures.items():
        section = "least" if name in limits["least"] or name.startswith("median") else "most"
        limit = limits[section].get(name)
        if limit is None:
            text = text.replace(f"[{section}]\n", f"[{section}]\n{name} = {value:.10g}\n")
        elif value > limit if section == "least" else value < limit:
            text = re.sub(rf"^{name} = [\d.]+", f"{name} = {value:.10g}", text, flags=re.MULTILINE)
    return text


def walk_figures() -> dict[str, float]:
    """Return the figures of tools/walk.py, such as `fedavg_round_files`."""
    from tools.walk import measure as walks

    return {f"{name}_{figure}": value for name, row in walks().items() for figure, value in row.items()}


def main(words: list[str] | None = None) -> int:
    """Compare, print or lower; return the exit status."""
    parser = argparse.ArgumentParser(description="Compare figures of the product with their limits.")
    parser.add_argument("--walks", action="store_true", help="also walk through the running product")
    parser.add_argument("--update", action="store_true", help="lower the limits to today's figures")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options: Any = parser.parse_args(words)
    limits = tomllib.loads(LIMITS.read_text("utf-8"))
    tree = Tree(ROOT, limits["rooms"])
    figures = measure(tree, limits["names"]["bare"])
    figures["config_keys"], figures["config_keys_unnamed"] = config_keys(tree)
    figures |= walk_figures() if options.walks else {}
    if options.update:
        LIMITS.write_text(tightened(LIMITS.read_text("utf-8"), figures), "utf-8")
        limits = tomllib.loads(LIMITS.read_text("utf-8"))
    if options.json:
        print(json.dumps(figures, indent=2))
    lines = exceeded(figures, limits)
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
