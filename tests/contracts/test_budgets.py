"""Files stay below 200 lines and functions below 40, docstrings left out; in the product, its tests and its studies."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("common", "client", "server", "deploy", "studies", "examples", "tests")
FILE, FUNCTION = 200, 40


def files() -> list[Path]:
    return sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def lengths(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name of each function and the lines of its body without its docstring and signature."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("path", files(), ids=str)
def test_files_and_functions_are_short(path: Path) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert len(text.splitlines()) <= FILE
    assert [(name, lines) for name, lines in lengths(ast.parse(text)) if lines > FUNCTION] == []
