"""A task, or a method, is named by at most three shared files: its entries in the registries."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from common.methods.registry import METHODS
from common.tasks.registry import TASKS
from tests.contracts.test_no_task_names import LAYERS, ROOMS, ROOT, docstrings

MOST = 3
OF_ONE = {"server/aggregation/pooled_properties.py"}
"""Files of one method outside its own folders: FedSTL's aggregation of properties."""
AMBIGUOUS = {"local"}
"""Methods whose name is also another word: a phase of a round, and the trust of a run. Only their modules count."""


def is_of_one(path: Path) -> bool:
    """Return True for a file that is of one task or one method."""
    of_task = "tasks" in path.parts and any(part.removesuffix(".py") in TASKS for part in path.parts)
    if path.name == "api.py" or str(path) in OF_ONE:  # an `api` exports base classes of plug-ins
        return True
    return of_task or (any(room in path.parts[:-1] for room in ROOMS) and path.name != "registry.py")


@cache
def shared_texts() -> dict[str, frozenset[str]]:
    """Return the modules imported, and the texts, of every shared file."""
    found = {}
    for path in (path.relative_to(ROOT) for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        if is_of_one(path):
            continue
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        skipped = docstrings(tree)
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        texts = {
            n.value
            for n in ast.walk(tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n not in skipped
        }
        found[str(path)] = frozenset(imported | texts)
    return found


def naming(pattern: str) -> list[str]:
    return sorted(path for path, texts in shared_texts().items() if any(re.fullmatch(pattern, text) for text in texts))


@pytest.mark.parametrize("task", [name for name in TASKS if TASKS.origin(name) == "fedloom"])
def test_a_task_stands_in_three_registries(task: str) -> None:
    assert len(naming(rf"{task}|\w+\.tasks\.{task}\b.*")) <= MOST


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS.origin(name) == "fedloom"])
def test_a_method_stands_in_three_registries(method: str) -> None:
    module = METHODS[method].options.__module__.rpartition(".")[2]
    modules = rf"(common\.methods|server\.strategies|client\.trainers)\.{module}\b.*"
    files = naming(modules if method in AMBIGUOUS else f"{method}|{modules}")
    assert len(files) <= MOST, files
