"""Checks of the code's shape: sizes, names of tasks and methods, users of `common.logic`, imports of Flower."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from common.methods.planners import method_names
from common.methods.registry import METHODS
from common.tasks.registry import TASKS
from tools.sources import CHECKED, LAYERS, ROOT, parsed, relative

FOLDERS, SIZES, NAMES, FLOWER = (CHECKED[section] for section in ("folders", "sizes", "names", "flower"))
IMPORTS = Path(__file__).parent / "flower_imports.toml"


def modules(*folders: str) -> list[Path]:
    """Return the Python files of some folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def sizes() -> Iterator[str]:
    """Find files and functions that are too long."""
    for path in modules(*FOLDERS["product"], *FOLDERS["studies"], *FOLDERS["others"]):
        lines, place = len(path.read_text("utf-8").splitlines()), relative(path)
        if lines > SIZES["file"] and place not in SIZES["allowed"]:
            yield f"{place}:1: {lines} lines > {SIZES['file']}; split it, or allow it with a reason in tools/check.toml"
        for node, length in function_lengths(parsed(path)):
            if length > SIZES["function"]:
                yield f"{place}:{node.lineno}: {node.name} has {length} lines > {SIZES['function']}; split it"


def function_lengths(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Yield each function with the lines of its body, without its docstring and signature."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            yield node, (node.end_lineno or 0) - body[0].lineno + 1


def is_of_task(path: Path) -> bool:
    """Return True for a file that is of one task."""
    return "tasks" in path.parts and any(part.removesuffix(".py") in TASKS for part in path.parts)


def is_of_method(path: Path) -> bool:
    """Return True for a file that is of one method, planner or mechanism."""
    return any(room in path.parts[:-1] for room in NAMES["rooms"])


def _lone_texts(tree: ast.AST) -> set[ast.AST]:
    """Return the texts that stand alone as statements: docstrings."""
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def names_of_tasks_and_methods() -> Iterator[str]:
    """Find names of tasks and methods in shared files, which reach everything of theirs through a registry."""
    words = {*TASKS, *method_names()}
    shared = [
        (path, place)
        for path in modules(*LAYERS)
        if not (is_of_task(place := path.relative_to(ROOT)) or is_of_method(place) or path.name == "registry.py")
    ]
    if len(shared) < 50:
        yield f"tools/check.toml:1: only {len(shared)} shared files are found; correct its folders and rooms"
    for path, place in shared:
        forbidden, texts = words - {*NAMES["allowed"].get(place.as_posix(), ())}, _lone_texts(parsed(path))
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Constant) and node not in texts and node.value in forbidden:
                yield f"{place}:{node.lineno}: {node.value!r} in a shared file; reach it through a registry"


@cache
def _shared_words() -> Mapping[str, frozenset[str]]:
    """Return the modules imported, and the texts, of every file that is not of one task or method."""
    found = {}
    for path in modules(*LAYERS):
        place = path.relative_to(ROOT)
        has_method = is_of_method(place) and path.name != "registry.py"
        if path.name == "api.py" or place.as_posix() in NAMES["of_one_method"] or is_of_task(place) or has_method:
            continue  # an `api` exports base classes of plug-ins
        nodes, docs = list(ast.walk(parsed(path))), _lone_texts(parsed(path))
        imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n not in docs}
        found[place.as_posix()] = frozenset(imported | texts)
    return found


def registries() -> Iterator[str]:
    """Find tasks and methods that more shared files name than their entries in the registries."""
    patterns = {task: rf"{task}|\w+\.tasks\.{task}\b.*" for task in TASKS if TASKS.origin(task) == "fedloom"}
    rooms = "|".join(NAMES["rooms"])
    for method in (name for name in METHODS if METHODS.origin(name) == "fedloom"):
        module = METHODS[method].options.__module__.rpartition(".")[2]
        of_method = rf"\w+\.({rooms})\.{module}\b.*"
        patterns[method] = of_method if method in NAMES["ambiguous"] else f"{method}|{of_method}"
    for name, pattern in patterns.items():
        files = sorted(f for f, texts in _shared_words().items() if any(re.fullmatch(pattern, text) for text in texts))
        if len(files) > NAMES["most_registries"]:
            yield f"{files[0]}:1: {name} is named by {len(files)} shared files: {', '.join(files)}; use a registry"


def unused_logic() -> Iterator[str]:
    """Find public names and modules of the logic that no code of the product uses."""
    folder = ROOT / CHECKED["logic"]["folder"]
    sources = {path: path.read_text("utf-8") for path in modules(*LAYERS)}
    code = "\n".join(re.sub(r'""".*?"""', "", source, flags=re.DOTALL) for source in sources.values())
    words, defined = Counter(re.findall(r"\w+", code)), Counter(re.findall(r"(?:def|class) (\w+)", code))
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if words[node.name] <= defined[node.name]:
                yield f"{relative(path)}:{node.lineno}: the product does not use {node.name}; delete it"
    package = CHECKED["logic"]["folder"].replace("/", ".")
    reach = _reached(package, folder, {path: text for path, text in sources.items() if path.parent != folder})
    for path in sorted(folder.glob("*.py")):
        if path.stem not in {*reach, "__init__"}:
            yield f"{relative(path)}:1: the product does not import {path.stem}; delete it"


def _reached(package: str, folder: Path, outside: Mapping[Path, str]) -> set[str]:
    """Return the modules of a package that other code imports, directly or through its modules."""
    used = re.compile(rf"{re.escape(package)}(?:\.| import )(\w+)")
    pending, reached = {name for text in outside.values() for name in used.findall(text)}, set[str]()
    while pending:
        reached |= {name for name in pending if (folder / f"{name}.py").exists()}
        texts = [(folder / f"{name}.py").read_text("utf-8") for name in reached]
        found = {name for text in texts for name in used.findall(text)}
        pending = {name for name in found - reached if (folder / f"{name}.py").exists()}
    return reached


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and module of every absolute import, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def private_flower_modules(tree: ast.AST) -> set[str]:
    """Return the modules of Flower that are not its public interface and are imported."""
    public = tuple(FLOWER["public"])
    named = {name for _, name in imported_modules(tree) if name == "flwr" or name.startswith("flwr.")}
    return {name for name in named if not any(name == one or name.startswith(f"{one}.") for one in public)}


def flower_imports(allowed: Mapping[str, Iterable[str]] | None = None) -> Iterator[str]:
    """Find private modules of Flower that a file imports without being listed, and listed ones that none imports."""
    listed = tomllib.loads(IMPORTS.read_text("utf-8")) if allowed is None else allowed
    found = {relative(path): private_flower_modules(parsed(path)) for path in modules(*FOLDERS["product"])}
    for place in sorted({*found, *listed}):
        used, known_ones = found.get(place, set()), {*listed.get(place, ())}
        for name in sorted(used - known_ones):
            yield f"{place}:1: imports {name}, which is private to Flower; use a listed door, or list it in {IMPORTS.name}"
        for name in sorted(known_ones - used):
            yield f"tools/{IMPORTS.name}:1: {place} does not import {name}; remove it"


def flower_masks() -> Iterator[str]:
    """Find uses of Flower's own masks."""
    for path in modules(*FOLDERS["product"], *FOLDERS["studies"], "examples"):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            if any(f"{prefix}{alias.name}".startswith(FLOWER["forbidden"]) for alias in node.names):
                yield f"{relative(path)}:{node.lineno}: imports {FLOWER['forbidden']}; use our secure sums"


def slow_tests() -> Iterator[str]:
    """Find entries of the list of slow tests that do not exist."""
    for path in tomllib.loads((ROOT / "tests" / "slow.toml").read_text("utf-8"))["slow"]:
        if not (ROOT / "tests" / path).exists():
            yield f"tests/slow.toml:1: no file tests/{path}; rename or remove it"


CHECKS = (slow_tests, sizes, names_of_tasks_and_methods, registries, unused_logic, flower_imports, flower_masks)
