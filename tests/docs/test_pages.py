"""Pages are short, and their links, commands, options, keys, paths and copied files exist."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click
import pytest
import typer

from common.config.parse import option_keys
from common.options import kebab
from deploy.cli.app import app
from tests.docs.pages import README, ROOT, anchors, blocks, headings, links, pages, prose, sentences, spans

MOST_WORDS, MOST_LINES, LONGEST = 900, 160, 25
EXAMPLES = ("weather", "trimmedmean")
"""Task and method of the example packages, which are not installed here."""

KEY = re.compile(r"(?<![\w./-])(?:tasks|algorithm|privacy|federation)\.[a-z][\w.-]*[a-z\d]")
FILE = re.compile(r"(?:common|client|server|deploy|studies|tests|examples|docs)/[\w./-]+")
EVERY_PAGE = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
PROSE = pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
"""Pages, and the changelog, which may name what no longer exists."""


@cache
def options() -> Mapping[tuple[str, ...], set[str]]:
    """Return every command, as words after `fedloom`, with its options."""
    return dict(_options(typer.main.get_command(app), ()))


def _options(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    yield words, {*own, "--help"}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            assert found
            yield from _options(found, (*words, name))


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of every call of `fedloom` on a page, in blocks and in the text."""
    shell = [block.text for block in blocks(page) if block.info in ("sh", "bash")]
    lines = "\n".join(shell).replace("\\\n", " ").splitlines()
    for line in [*lines, *(span for span in spans(page) if span.startswith("fedloom "))]:
        words = shlex.split(line, comments=True)
        for place, word in enumerate(words):
            if word in ("fedloom", ".venv/bin/fedloom"):
                yield words[place + 1 :]


def keys(page: Path) -> Iterator[str]:
    """Yield the configuration keys that a page names; those of examples and placeholders are left out."""
    shell = " ".join(block.text for block in blocks(page) if block.info in ("sh", "bash", ""))
    for key in KEY.findall(" ".join([shell, *spans(page)])):
        if not any(f".{name}" in key for name in EXAMPLES):
            yield key


def test_the_readme_is_short() -> None:
    text = README.read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert len(text.splitlines()) <= MOST_LINES


@PROSE
def test_sentences_are_short(page: Path) -> None:
    assert [sentence for sentence in sentences(page) if len(sentence.split()) > LONGEST] == []


@EVERY_PAGE
def test_no_two_headings_are_equal(page: Path) -> None:
    found = headings(page)
    assert found
    assert [heading for heading in found if found.count(heading) > 1] == []


@PROSE
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_every_threat_names_the_test_that_shows_it() -> None:
    text = (ROOT / "docs" / "explanation" / "threats.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 6]
    assert len(rows) > 20
    assert [row[0] for row in rows[1:] if "`tests/" not in row[-1]] == []


def test_every_page_of_the_documentation_is_linked_from_its_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in links(index)}
    tables = {
        (page.parent / target.partition("#")[0]).resolve() for page in linked for target in _links_to_tables(page)
    }
    assert [page for page in (ROOT / "docs").glob("**/*.md") if page not in {index, *linked, *tables}] == []


def _links_to_tables(page: Path) -> list[str]:
    """Return the links of a results page to its own page of tables."""
    name = f"{page.stem}/tables.md"
    return [target for target in links(page) if target.startswith(name)] if page.suffix == ".md" else []


@EVERY_PAGE
def test_commands_and_options_exist(page: Path) -> None:
    for words in commands(page):
        plain = [word for word in words if not word.startswith("-")]
        found = max((name for name in options() if tuple(plain[: len(name)]) == name), key=len)
        assert found or not plain or plain[0].isupper(), f"no command '{plain[0]}'"
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= options()[found], " ".join(words)


@EVERY_PAGE
def test_configuration_keys_exist(page: Path) -> None:
    existing = option_keys()
    for key in keys(page):
        assert any(f"{name}.".startswith(f"{kebab(key)}.") for name in existing), key


@EVERY_PAGE
def test_paths_exist(page: Path) -> None:
    for path in [span for span in spans(page) if FILE.fullmatch(span)]:
        assert (ROOT / path).exists() or "NAME" in path, path


@EVERY_PAGE
def test_titled_blocks_equal_their_files(page: Path) -> None:
    for block in blocks(page):
        if block.file:
            assert block.text == block.file.read_text("utf-8"), "run python -m tests.docs.pages"


def test_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    code = [text for page in pages() for text in (*(block.text for block in blocks(page)), *spans(page))]
    used = {name for text in code for name in re.findall(r"^make ([a-z]+)", text, re.MULTILINE)}
    assert used
    assert used <= set(targets)


def test_the_picture_is_small_and_keeps_its_text() -> None:
    picture = (ROOT / "docs" / "assets" / "overview.svg").read_text("utf-8")
    assert len(picture.encode()) <= 12_000
    assert "<text" in picture
    assert "overview.svg" in prose(README)


def test_messages_of_troubleshooting_occur_in_the_code() -> None:
    files = [path for layer in ("client", "common", "deploy", "server") for path in (ROOT / layer).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    page = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert len(messages) > 25
    assert [message for message in messages if not any(message in text for text in texts)] == []
