"""Text of the repository for checks: docstrings, comments, literals, names, pages."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CHECKED: dict[str, Any] = tomllib.loads((Path(__file__).parent / "check.toml").read_text("utf-8"))
"""Data of the checks."""
LAYERS: tuple[str, ...] = tuple(CHECKED["folders"]["layers"])

BLOCKED = re.compile(
    r"\b(in clear|came to nothing|counts as nothing|everybody's|whoever|dealt|dealing|purse|witness|told|tells)\b"
    r"|\b(local|weekly|everybody's|gRPC|open|unencrypted|unprotected) line\b|\bline to (the|a) (server|beat)\b",
    re.IGNORECASE,
)
"""Words and phrases that no text uses."""


@dataclass(frozen=True)
class Text:
    """Text with its place, `path:line`, and its kind."""

    place: str
    kind: str
    text: str


def paths(*suffixes: str) -> list[Path]:
    """Return sorted files with those suffixes in layers, studies, docs and examples, and README.md."""
    folders = (*LAYERS, *CHECKED["folders"]["studies"], "docs", "examples")
    found = {path for folder in folders for suffix in suffixes for path in (ROOT / folder).rglob(f"*{suffix}")}
    found = {path for path in found if not path.is_relative_to(ROOT / "studies" / "tests")}
    if ".md" in suffixes:
        found.add(ROOT / "README.md")
    return sorted(found)


def relative(path: Path) -> str:
    """Return a path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a source file."""
    return ast.parse(path.read_text("utf-8"))


def docstrings(path: Path) -> Iterator[Text]:
    """Yield the docstrings of a file: of modules, classes, functions and attributes."""
    for node in ast.walk(parsed(path)):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield Text(f"{relative(path)}:{statement.lineno}", "docstring", text)


def comments(path: Path) -> Iterator[Text]:
    """Yield the comments of a file."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield Text(f"{relative(path)}:{token.start[0]}", "comment", token.string)


def literals(path: Path) -> Iterator[Text]:
    """Yield the string literals of a file, docstrings included; placeholders are left out."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(f"{relative(path)}:{node.lineno}", "text", node.value)


def names(path: Path) -> Iterator[Text]:
    """Yield names that a file binds or uses: variables, arguments, attributes, functions and classes."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield Text(f"{relative(path)}:{node.lineno}", "name", name)
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield Text(f"{relative(path)}:{node.lineno}", "name", name)


def page_lines(path: Path) -> Iterator[Text]:
    """Yield the lines of a page without code and quotations."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), path.read_text("utf-8"), flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        yield Text(f"{relative(path)}:{number}", "page", unquoted(line))


def unquoted(text: str) -> str:
    """Return text without code in backticks and without text in double quotes."""
    return re.sub(r"``?[^`]*``?|\"[^\"\n]*\"|“[^”]*”", " ", text)
