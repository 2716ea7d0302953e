"""Messages of our errors have the form `<what is wrong>; <what to do>`; every finding is `path:line: text`."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.errors import FedloomError
from tests.support.prose import BLOCKED, parsed, paths, relative

SENTENCE_END = re.compile(r"[^.]\.$|!")


def _subclasses(root: type) -> set[str]:
    return {root.__name__}.union(*map(_subclasses, root.__subclasses__()))


def _error_names() -> set[str]:
    """Names of our errors: those of `common.errors`, and classes of the tree that derive from them."""
    names, before = _subclasses(FedloomError), set[str]()
    classes = [n for p in paths(".py") for n in ast.walk(parsed(p)) if isinstance(n, ast.ClassDef)]
    while names != before:
        before = set(names)
        names |= {c.name for c in classes if names & {ast.unparse(base) for base in c.bases}}
    return names


ERRORS = _error_names()


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each message, placeholders written `{}`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            for text in _texts(node.args[0]):
                yield f"{relative(path)}:{node.lineno}", text


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
        case ast.BinOp(left=left, right=right):
            yield from (a + b for a in (*_texts(left),) or ("{}",) for b in (*_texts(right),) or ("{}",))


MESSAGES = [message for path in paths(".py") for message in _messages(path)]


def _capital(text: str) -> bool:
    """Return True if the text starts with a capitalized word; acronyms and names in capitals are allowed."""
    return re.match(r"[A-Z][a-z]*\b(?![\w.(-])", text) is not None


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("starts with a capital letter", _capital),
        ("ends in a full stop or has an exclamation mark", lambda text: bool(SENTENCE_END.search(text))),
        ("contains a word of the block list", lambda text: bool(BLOCKED.search(text))),
    ],
    ids=["capital", "full stop", "blocked word"],
)
def test_no_message(rule: str, broken: Callable[[str], bool]) -> None:
    findings = sorted(f"{place}: {text}" for place, text in MESSAGES if broken(text))
    assert not findings, f"{len(findings)} messages: {rule}\n" + "\n".join(findings)


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 50
