"""Names and prose of the product follow the language rules; every finding is `path:line: text`."""

import ast
import re
from collections import defaultdict

import pytest
from rich.text import Text

from tests.support.prose import (
    BLOCKED,
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

QUESTION_WORDS = re.compile(r"\W*(What|Whether|Which|Where|How|Who|Why)\b")
LONGEST_SENTENCE, LONGEST_FIRST_LINE, LONGEST_README = 25, 100, 900  # words, characters, words
STORED_FOLDER = ".fedloom/dealt"
"""Folder with the ledgers of earlier versions; a new name would hide them, so its name is exempt."""
BLOCKED_NAMES = {"whoever", "dealt", "dealing", "purse", "witness", "told", "tells"}
VERBAL_MODULES = re.compile(
    r"(training|local_training|(full_)?ranking|tuning|timing|speed|planning|sampling|masking|mining|polling|partitioning"
    r"|clipping|shared_\w+|row_sparse|personalized|stacked_tensors|observed|planned|clustered)$"
)
TWICE: frozenset[str] = frozenset()
"""Classes that may occur twice in the four layers: implementations of a protocol."""


def _findings(kind: str) -> list[str]:
    return sorted(set(RULES[kind]()))


def _question_openings() -> list[str]:
    return [f"{t.place}: {t.text[:60]}" for p in paths(".py") for t in docstrings(p) if QUESTION_WORDS.match(t.text)]


def _blocked_words() -> list[str]:
    texts = [t for p in paths(".py") for source in (comments, literals) for t in source(p)]
    texts += [t for p in paths(".md", ".jinja") for t in page_lines(p)]
    return [
        f"{t.place}: {found[0]}"
        for t in texts
        for found in BLOCKED.finditer(unquoted(t.text.replace(STORED_FOLDER, "")))
    ]


def _blocked_names() -> list[str]:
    found = [t for p in paths(".py") for t in names(p)]
    return [f"{t.place}: {t.text}" for t in found if t.text == "known" or BLOCKED_NAMES & {*t.text.lower().split("_")}]


def _lines_that_are_no_text() -> list[str]:
    """Return uses of `line` that are not of texts: a channel, a baseline, an event."""
    return [
        f"{relative(p)}:{node.lineno}: {ast.unparse(node)}"
        for p in paths(".py")
        for node in ast.walk(parsed(p))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and (node.value.id if isinstance(node.value, ast.Name) else node.value.attr) in ("line", "_line")
        and not any(hasattr(text, node.attr) for text in (str, bytes, Text))
    ]


def _long_first_lines() -> list[str]:
    first_lines = [(t.place, t.text.strip().partition("\n")[0]) for p in paths(".py") for t in docstrings(p)]
    return [f"{place}: {text}" for place, text in first_lines if len(text) > LONGEST_FIRST_LINE]


def _long_sentences() -> list[str]:
    """Sentences of README and of first docstring lines; a first line may go on to the end of its paragraph."""
    texts = [(t.place, t.text.strip().partition("\n\n")[0]) for p in paths(".py") for t in docstrings(p)]
    texts += [(t.place, t.text) for t in page_lines(ROOT / "README.md")]
    sentences = [(place, s) for place, text in texts for s in re.split(r"(?<=[.!?;:])\s+|\|", text)]
    return [f"{place}: {s[:60]}" for place, s in sentences if len(s.split()) > LONGEST_SENTENCE]


def _readme_length() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    words = len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())
    return [f"README.md:1: {words} words"] if words > LONGEST_README else []


def _classes_that_occur_twice() -> list[str]:
    places = defaultdict(list)
    for path in paths(".py"):
        if relative(path).startswith(tuple(f"{layer}/" for layer in LAYERS)):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and node.name not in TWICE:
                    places[node.name].append(f"{relative(path)}:{node.lineno}")
    return [f"{place}: {name}" for name, found in places.items() if len(found) > 1 for place in found]


def _verbal_modules() -> list[str]:
    stems = [(relative(p), p.parent.name if p.stem == "__init__" else p.stem) for p in paths(".py")]
    return [f"{place}:1: {s}" for place, s in stems if re.search(r"(ing|ed)$", s) and not VERBAL_MODULES.match(s)]


RULES = {
    "docstrings that open with a question word": _question_openings,
    "words of the block list": _blocked_words,
    "names of the block list": _blocked_names,
    "lines that are no text": _lines_that_are_no_text,
    "first docstring lines that are too long": _long_first_lines,
    "sentences that are too long": _long_sentences,
    "a README that is too long": _readme_length,
    "class names that occur twice": _classes_that_occur_twice,
    "modules named by participles and gerunds": _verbal_modules,
}


@pytest.mark.parametrize("kind", RULES)
def test_there_are_no(kind: str) -> None:
    findings = _findings(kind)
    assert not findings, f"{len(findings)} {kind}:\n" + "\n".join(findings)
