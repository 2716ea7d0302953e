"""Checks of names, docstrings and messages of errors by the language rules."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text as RichText

from common.errors import FedloomError
from tools.sources import (
    BLOCKED,
    CHECKED,
    LAYERS,
    ROOT,
    comments,
    docstrings,
    literals,
    names,
    page_lines,
    parsed,
    paths,
    relative,
    unquoted,
)

RULES = CHECKED["language"]
QUESTION_WORDS = re.compile(r"\W*(What|Whether|Which|Where|How|Who|Why)\b")
VERBAL_MODULES = re.compile(rf"({RULES['verbal']})$")


def question_openings() -> Iterator[str]:
    """Find docstrings that open with a question word."""
    for text in (text for path in paths(".py") for text in docstrings(path)):
        if QUESTION_WORDS.match(text.text):
            yield f"{text.place}: a docstring opens with a question word: {text.text[:60]}"


def blocked_words() -> Iterator[str]:
    """Find words of the block list in texts."""
    texts = [text for path in paths(".py") for source in (comments, literals) for text in source(path)]
    texts += [text for path in paths(".md", ".jinja") for text in page_lines(path)]
    for text in texts:
        for found in BLOCKED.finditer(unquoted(text.text.replace(RULES["stored_folder"], ""))):
            yield f"{text.place}: blocked words: {found[0]}"


def blocked_names() -> Iterator[str]:
    """Find names of the block list."""
    blocked = {*RULES["blocked_names"]}
    for text in (text for path in paths(".py") for text in names(path)):
        if text.text == "known" or blocked & {*text.text.lower().split("_")}:
            yield f"{text.place}: blocked name: {text.text}"


def lines_that_are_no_text() -> Iterator[str]:
    """Find uses of `line` that are not of texts: a channel, a baseline, an event."""
    for path in paths(".py"):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name | ast.Attribute):
                continue
            holder = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if holder in ("line", "_line") and not any(hasattr(text, node.attr) for text in (str, bytes, RichText)):
                yield f"{relative(path)}:{node.lineno}: a line that is no text: {ast.unparse(node)}"


def long_first_lines() -> Iterator[str]:
    """Find first lines of docstrings that are too long."""
    for text in (text for path in paths(".py") for text in docstrings(path)):
        first = text.text.strip().partition("\n")[0]
        if len(first) > RULES["first_line"]:
            yield f"{text.place}: a first docstring line has {len(first)} characters > {RULES['first_line']}: {first}"


def long_sentences() -> Iterator[str]:
    """Find long sentences of README and of first lines of docstrings, which may go on to the end of their paragraph."""
    texts = [(t.place, t.text.strip().partition("\n\n")[0]) for path in paths(".py") for t in docstrings(path)]
    texts += [(t.place, t.text) for t in page_lines(ROOT / "README.md")]
    for place, text in texts:
        for sentence in re.split(r"(?<=[.!?;:])\s+|\|", text):
            if len(sentence.split()) > RULES["sentence"]:
                yield f"{place}: a sentence has more than {RULES['sentence']} words: {sentence[:60]}"


def classes_that_occur_twice() -> Iterator[str]:
    """Find class names that occur twice in the four layers."""
    places = defaultdict(list)
    for path in paths(".py"):
        if relative(path).startswith(tuple(f"{layer}/" for layer in LAYERS)):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and node.name not in RULES["twice"]:
                    places[node.name].append(f"{relative(path)}:{node.lineno}")
    for name, found in places.items():
        if len(found) > 1:
            yield from (f"{place}: another class is named {name} too" for place in found)


def verbal_modules() -> Iterator[str]:
    """Find modules that are named by a participle or a gerund."""
    for path in paths(".py"):
        stem = path.parent.name if path.stem == "__init__" else path.stem
        if re.search(r"(ing|ed)$", stem) and not VERBAL_MODULES.match(stem):
            yield f"{relative(path)}:1: a module is named by a participle or gerund: {stem}"


def _subclasses(root: type) -> set[str]:
    return {root.__name__}.union(*map(_subclasses, root.__subclasses__()))


def _error_names() -> set[str]:
    """Return the names of our errors: those of `common.errors`, and classes of the tree that derive from them."""
    found, before = _subclasses(FedloomError), set[str]()
    classes = [n for path in paths(".py") for n in ast.walk(parsed(path)) if isinstance(n, ast.ClassDef)]
    while found != before:
        before = set(found)
        found |= {c.name for c in classes if found & {ast.unparse(base) for base in c.bases}}
    return found


def messages(path: Path, errors: set[str]) -> Iterator[tuple[str, str]]:
    """Yield place and text of each message of an error, placeholders written `{}`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors and node.args:
            for text in _texts(node.args[0]):
                yield f"{relative(path)}:{node.lineno}", text


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values)
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
        case ast.BinOp(left=left, right=right):
            yield from (a + b for a in (*_texts(left),) or ("{}",) for b in (*_texts(right),) or ("{}",))


def broken_rules(text: str) -> Iterator[str]:
    """Yield the rules of messages that a text breaks: the form is `<what is wrong>; <what to do>`."""
    if re.match(r"[A-Z][a-z]*\b(?![\w.(-])", text):  # acronyms and names in capitals are allowed
        yield "starts with a capital letter"
    if re.search(r"[^.]\.$|!", text):
        yield "ends in a full stop or has an exclamation mark"
    if BLOCKED.search(text):
        yield "contains a blocked word"


def messages_of_errors() -> Iterator[str]:
    """Find messages of our errors that break a rule."""
    errors = _error_names()
    found = [message for path in paths(".py") for message in messages(path, errors)]
    if len(found) < 50:
        yield f"tools/check_texts.py:1: only {len(found)} messages of errors are found; correct the check"
    yield from (f"{place}: a message {rule}: {text}" for place, text in found for rule in broken_rules(text))


CHECKS = (
    question_openings,
    blocked_words,
    blocked_names,
    lines_that_are_no_text,
    long_first_lines,
    long_sentences,
    classes_that_occur_twice,
    verbal_modules,
    messages_of_errors,
)
