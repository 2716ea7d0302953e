"""Checks of pages: they are short, and their links, commands, options, keys, paths and copied files exist."""

import ast
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path

import click
import typer

from common.config.parse import option_keys
from common.options import kebab
from deploy.cli.app import app
from tools.pages import README, ROOT, anchors, blocks, headings, links, pages, prose, sentences, spans
from tools.sources import CHECKED, LAYERS, parsed, relative

RULES, FOLDERS = CHECKED["pages"], CHECKED["folders"]
DOCS = ROOT / "docs"
KEY = re.compile(
    r"(?<![\w./-])(?:tasks|algorithm|training|planner|privacy|federation|secure-sums)\.[a-z][\w.-]*[a-z\d]"
)
FILE = re.compile(rf"(?:{'|'.join([*FOLDERS['product'], *FOLDERS['studies'], *FOLDERS['others'], 'docs'])})/[\w./-]+")
EXTERNAL = re.compile(r"https?://(?!127\.0\.0\.1)[^\s)>\"'`;,]+")


def _with_changelog() -> list[Path]:
    """Return the pages, and the changelog, which may name what no longer exists."""
    return [*pages(), ROOT / "CHANGELOG.md"]


@cache
def options() -> Mapping[tuple[str, ...], set[str]]:
    """Return every command, as words after `fedloom`, with its options; a sweep takes those of a simulation too."""
    found = dict(_options(typer.main.get_command(app), ()))
    return {**found, ("sweep",): found["sweep",] | found["simulate",]}


def _options(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    yield words, {*names, "--help"}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            if found:
                yield from _options(found, (*words, name))


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of every call of `fedloom` on a page, in blocks and in the text."""
    shell = [block.text for block in blocks(page) if block.info in ("sh", "bash")]
    lines = "\n".join(shell).replace("\\\n", " ").splitlines()
    for line in [*lines, *(span for span in spans(page) if span.startswith("fedloom "))]:
        words = shlex.split(line, comments=True)
        for index, word in enumerate(words):
            if word in ("fedloom", ".venv/bin/fedloom"):
                yield words[index + 1 :]


def keys(page: Path) -> Iterator[str]:
    """Yield the configuration keys that a page names; those of examples and placeholders are left out."""
    shell = " ".join(block.text for block in blocks(page) if block.info in ("sh", "bash", ""))
    for key in KEY.findall(" ".join([shell, *spans(page)])):
        if not any(f".{name}" in key for name in RULES["examples"]):
            yield key


def readme() -> Iterator[str]:
    """Find a README that is too long, also without its code."""
    text = README.read_text("utf-8")
    if (words := len(text.split())) > RULES["readme_words"]:
        yield f"README.md:1: {words} words > {RULES['readme_words']}; shorten it"
    if (lines := len(text.splitlines())) > RULES["readme_lines"]:
        yield f"README.md:1: {lines} lines > {RULES['readme_lines']}; shorten it"


def design() -> Iterator[str]:
    """Find a page of design decisions that is too long."""
    page = DOCS / "explanation" / "design.md"
    text = page.read_text("utf-8")
    if (entries := len(re.findall(r"^### ", text, re.MULTILINE))) > RULES["design_entries"]:
        yield f"{relative(page)}:1: {entries} entries > {RULES['design_entries']}; remove one that needs no defence"
    if (words := len(text.split())) > RULES["design_words"]:
        yield f"{relative(page)}:1: {words} words > {RULES['design_words']}; shorten it"


def changelog() -> Iterator[str]:
    """Find a changelog that is too long."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if (words := len(text.split())) > RULES["changelog_words"]:
        yield f"CHANGELOG.md:1: {words} words > {RULES['changelog_words']}; shorten it"
    if (lines := len(text.split("\n## ")[1].splitlines())) > RULES["release_lines"]:
        yield f"CHANGELOG.md:1: {lines} lines of the newest release > {RULES['release_lines']}; shorten it"


def long_sentences_of_pages() -> Iterator[str]:
    """Find sentences of pages that are too long."""
    for page in _with_changelog():
        for sentence in sentences(page):
            if len(sentence.split()) > RULES["sentence"]:
                yield f"{relative(page)}:1: a sentence has more than {RULES['sentence']} words: {sentence[:60]}"


def equal_headings() -> Iterator[str]:
    """Find headings that a page has twice, and pages without one."""
    for page in pages():
        found = Counter(headings(page))
        if not found:
            yield f"{relative(page)}:1: no heading"
        yield from (f"{relative(page)}:1: {count} headings '{name}'" for name, count in found.items() if count > 1)


def broken_links() -> Iterator[str]:
    """Find links to pages and headings that do not exist."""
    for page in _with_changelog():
        for target in links(page):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                yield f"{relative(page)}:1: a link leads nowhere: {target}"


def external_links() -> Iterator[str]:
    """Find external links that are not listed with a date, and listed ones that no page has."""
    texts = [path.read_text("utf-8") for path in _with_changelog()]
    used = {link.rstrip(".") for text in texts for link in EXTERNAL.findall(text)}
    listed = tomllib.loads((DOCS / "links.toml").read_text("utf-8"))
    yield from (f"docs/links.toml:1: {link} is not listed" for link in sorted(used - {*listed}))
    yield from (f"docs/links.toml:1: no page has {link}" for link in sorted({*listed} - used))
    yield from (f"docs/links.toml:1: {link} is no https" for link in sorted(used) if not link.startswith("https://"))
    yield from (f"docs/links.toml:1: {link} has no date" for link, day in listed.items() if type(day) is not date)


def threats_without_test() -> Iterator[str]:
    """Find threats that name no test that shows them."""
    text = (DOCS / "explanation" / "threats.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 6]
    if len(rows) <= 20:
        yield f"docs/explanation/threats.md:1: only {len(rows)} threats are found; correct the page or the check"
    for row in rows[1:]:
        if "`tests/" not in row[-1]:
            yield f"docs/explanation/threats.md:1: threat '{row[0].strip()}' names no test"


def pages_without_link() -> Iterator[str]:
    """Find pages of the documentation that its index does not link, directly or as a page's tables."""
    index = DOCS / "index.md"
    linked = {(index.parent / target).resolve() for target in links(index)}
    tables = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in linked
        if page.suffix == ".md" and page.exists()
        for target in links(page)
        if target.startswith(f"{page.stem}/tables.md")
    }
    for page in DOCS.glob("**/*.md"):
        if page not in {index, *linked, *tables}:
            yield f"{relative(page)}:1: docs/index.md does not link it"


def commands_and_options() -> Iterator[str]:
    """Find commands and options that do not exist."""
    for page in pages():
        for words in commands(page):
            plain = [word for word in words if not word.startswith("-")]
            found = max((name for name in options() if tuple(plain[: len(name)]) == name), key=len)
            if not (found or not plain or plain[0].isupper()):
                yield f"{relative(page)}:1: no command '{plain[0]}'"
            for word in sorted({word.partition("=")[0] for word in words if word.startswith("-")} - options()[found]):
                yield f"{relative(page)}:1: no option {word}: fedloom {' '.join(words)}"


def configuration_keys() -> Iterator[str]:
    """Find configuration keys that do not exist."""
    existing = option_keys()
    for page in pages():
        for key in keys(page):
            if not any(f"{name}.".startswith(f"{kebab(key)}.") for name in existing):
                yield f"{relative(page)}:1: no configuration key {key}"


def paths_of_files() -> Iterator[str]:
    """Find paths of files that do not exist."""
    for page in pages():
        for path in (span for span in spans(page) if FILE.fullmatch(span)):
            if not (ROOT / path).exists() and "NAME" not in path:
                yield f"{relative(page)}:1: no file {path}"


def titled_blocks() -> Iterator[str]:
    """Find code blocks that differ from the file in their title."""
    for page in pages():
        for block in blocks(page):
            if block.file and not (block.file.exists() and block.text == block.file.read_text("utf-8")):
                yield f"{relative(page)}:{block.line}: differs from its file; run python -m tools.pages"


def targets_of_make() -> Iterator[str]:
    """Find targets of make that do not exist."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for page in pages():
        for text in (*(block.text for block in blocks(page)), *spans(page)):
            for name in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE):
                if name not in targets:
                    yield f"{relative(page)}:1: no target: make {name}"


def rooms() -> Iterator[str]:
    """Find rooms that the picture of the rooms does not show."""
    shown = (DOCS / "assets" / "rooms.svg").read_text("utf-8")
    for layer in LAYERS:
        for room in (path.parent.name for path in (ROOT / layer).glob("*/__init__.py")):
            if f">{room}</text>" not in shown:
                yield f"docs/assets/rooms.svg:1: {layer}/{room} is missing; run python docs/make_architecture.py"


def picture() -> Iterator[str]:
    """Find a picture of the README that is large or has lost its text."""
    text = (DOCS / "assets" / "overview.svg").read_text("utf-8")
    if len(text.encode()) > 12_000 or "<text" not in text or "overview.svg" not in prose(README):
        yield "docs/assets/overview.svg:1: more than 12,000 bytes, without text, or not in README.md"


def troubleshooting() -> Iterator[str]:
    """Find messages of troubleshooting that the code does not have."""
    files = [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(parsed(path))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    page = DOCS / "howto" / "troubleshooting.md"
    messages = re.findall(r"^### (.+)$", page.read_text("utf-8"), re.MULTILINE)
    if len(messages) <= RULES["fewest_messages"]:
        yield f"{relative(page)}:1: only {len(messages)} messages"
    for message in messages:
        if not any(message in text for text in texts):
            yield f"{relative(page)}:1: the code has no message '{message}'"


CHECKS = (
    readme,
    design,
    changelog,
    long_sentences_of_pages,
    equal_headings,
    broken_links,
    external_links,
    threats_without_test,
    pages_without_link,
    commands_and_options,
    configuration_keys,
    paths_of_files,
    titled_blocks,
    targets_of_make,
    rooms,
    picture,
    troubleshooting,
)
