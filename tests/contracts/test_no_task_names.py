"""Shared rooms name no task and no method: everything of theirs is reached through a registry."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.methods.registry import method_names
from common.tasks.registry import TASKS

ROOT = Path(__file__).parents[2]
LAYERS = ("common", "client", "server", "deploy")
NAMES = frozenset({*TASKS, *method_names()})

LOCAL = {"local"}
EXCEPT = {
    "common/wire/messages.py": LOCAL,
    "client/privacy/ledger/records.py": LOCAL,
    "common/privacy/options.py": LOCAL,
    "client/sharing_policy.py": LOCAL,
    "server/result.py": LOCAL,
    "server/secure/parties.py": LOCAL,
    "server/secure/resolved_trust.py": LOCAL,
    "deploy/commands/request.py": LOCAL,
}
"""Words that mean something else: a phase of training, the trust of a release."""

ROOMS = ("methods", "strategies", "trainers", "planning", "mechanisms")
"""Folders of which each file is of one method, planner or mechanism."""


def is_shared(path: Path) -> bool:
    """Return True for a file that is not of one task or one method."""
    parts = path.parts
    of_task = "tasks" in parts and any(part.removesuffix(".py") in TASKS for part in parts)
    return not (of_task or path.name == "registry.py" or any(room in parts[:-1] for room in ROOMS))


def shared_files() -> list[Path]:
    paths = (path.relative_to(ROOT) for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py")))
    return [path for path in paths if is_shared(path)]


def docstrings(tree: ast.AST) -> set[ast.AST]:
    """Return the texts that stand alone as statements."""
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def names_in(path: Path) -> Iterator[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    texts = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in texts and node.value in NAMES - EXCEPT.get(str(path), set()):
            yield f"{path}:{node.lineno}: '{node.value}'"


@pytest.mark.parametrize("path", shared_files(), ids=str)
def test_a_shared_file_names_no_task_and_no_method(path: Path) -> None:
    assert list(names_in(path)) == []


def test_the_rule_looks_at_most_files() -> None:
    assert len(shared_files()) > 150
