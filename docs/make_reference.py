"""Make the generated pages of docs/reference from the code: commands, options, events, messages.

`python docs/make_reference.py` writes them; a test compares.
"""

import html
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import typer

from common.arrays import Arrays
from common.config.reference import field_texts, option_references
from common.door.frames import DoorLimits
from common.wire import messages
from common.wire.encodings import BLOCK, CODES, SCALES
from deploy.cli.app import app
from deploy.commands.config import NAMED, as_toml, defaults_of_methods
from server.aggregation.metrics import MAX_PLAUSIBLE
from server.record import events

REFERENCE = Path(__file__).resolve().parent / "reference"
MADE = "Made by `python docs/make_reference.py`, not edited by hand."
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", NoneType: "null", Arrays: "arrays"}
KINDS = ("ENROL", "NAMES", "ASSIGN", "TRAIN", "EVALUATE")
"""Names of the message types in `common.wire.messages`, which clients answer."""
HELPER_KINDS = ("HELPER", "PREPARE", "OPEN")
"""Names of the message types in `common.wire.messages`, which helpers answer."""


def cli() -> Iterator[str]:
    """Yield the parts of the page of all commands."""
    yield f"# Command line\n\nAll commands with all options. [Commands](commands.md) is the overview. {MADE}"
    yield from _command(typer.main.get_command(app), ("fedloom",))


def _command(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(command, info_name=words[-1])
    if len(words) > 1:
        rows = [row for parameter in command.params for row in _parameter(parameter, context)]
        yield f"## {' '.join(words)}"
        yield html.escape(inspect.cleandoc(command.help or ""), quote=False)
        yield _table(("option", "meaning"), rows) if rows else ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            assert found
            if not found.hidden:
                yield from _command(found, (*words, name))


def _parameter(parameter: click.Parameter, context: click.Context) -> Iterator[tuple[str, str]]:
    if getattr(parameter, "hidden", False):
        return
    meta = parameter.make_metavar(context)
    argument = isinstance(parameter, click.Argument)
    names = [meta.strip("[]")] if argument else [*parameter.opts, *parameter.secondary_opts]
    shown = f"{', '.join(names)}{'' if argument or getattr(parameter, 'is_flag', False) else f' {meta}'}"
    yield f"`{shown}`", f"{getattr(parameter, 'help', '') or ''}{_default(parameter)}"


def _default(parameter: click.Parameter) -> str:
    value = parameter.opts[0] if parameter.default is True else parameter.default
    if value is None or value is False or str(value) in ("", "()", "[]"):
        return ""
    return f" Default: `{str(value).replace(str(Path.home()), '~')}`."


def options() -> Iterator[str]:
    """Yield the parts of the page of all options of runs."""
    yield "# Options of runs\n\n[Configuration](configuration.md) describes how to set them. " + MADE
    references = sorted(option_references(), key=lambda one: (one.key.count(".") > 0, one.key.rpartition(".")[0]))
    for section, found in groupby(references, key=lambda one: one.key.rpartition(".")[0]):
        yield f"## {section}" if section else "## Run"
        yield _table(
            ("key", "type", "default", "meaning"),
            [
                (
                    f"`{one.key.rpartition('.')[2]}`" + (f" (`{NAMED[one.key]}`)" if one.key in NAMED else ""),
                    ", ".join(filter(None, (one.type, one.bounds))),
                    f"`{as_toml(one.default)}`",
                    f"{one.meaning} Default of {defaults_of_methods(one)}." if one.of_methods else one.meaning,
                )
                for one in found
            ],
        )


def event_page() -> Iterator[str]:
    """Yield the parts of the page of a run's events."""
    yield (
        "# Events of a run\n\n`runs/<id>/metrics.jsonl` has one event a line, as a JSON object. The field `event` is its kind."
        " JSON has no NaN and no infinity: such numbers are `null`. Readers skip unknown fields, which later releases may"
        f" add, and torn last lines. The [live page](../howto/watch-a-run.md) and the report show these events. {MADE}"
    )
    kinds = [*get_args(events.Event), events.ClientRound]
    for kind in kinds:
        name = next((str(f.default) for f in fields(kind) if f.name == "event"), "client of a round")
        yield f"## {name}"
        yield _summary(kind)
        yield _fields(kind, kinds)


def wire() -> Iterator[str]:
    """Yield the parts of the page of the messages between server and clients."""
    kinds = get_args(messages.Payload)
    yield (
        f"# Messages between server and clients\n\nThe schema has version {messages.SCHEMA}. A side refuses messages of"
        " another version and names both. An absent value is empty, never null."
        f" The [threat model](../explanation/threats.md) names what each message reveals. {MADE}"
    )
    types = [(k, getattr(messages, k)) for k in KINDS] + [(k, getattr(messages, k)) for k in HELPER_KINDS]
    rows = [(f"`{text}`", _link(f"{k.title()}Request"), _link(f"{k.title()}Reply")) for k, text in types]
    yield (
        "## Exchanges\n\nThe server sends a request as a Flower message of this type, and the node replies. Clients reply to"
        f" the first {len(KINDS)}, helpers of secure sums to the others."
    )
    yield _table(("message type", "request", "reply"), rows)
    yield (
        f"A client that fails replies with Flower's error code {messages.FAILED}, one that refuses with {messages.REFUSED}."
        " The error's text is the reason."
    )
    yield "## Encoding and limits"
    yield _table(("limit", "value"), _limits())
    yield "## Limits of the door"
    yield "`fedloom serve --limits` prints them. They hold for each client, and at a client for its server where they say so."
    yield _table(("limit", "value", "of what"), DoorLimits().rows())
    for kind in kinds:
        yield f"## {kind.__name__}"
        yield _summary(kind)
        yield _fields(kind, kinds)


def _limits() -> list[tuple[str, str]]:
    return [
        ("record", "one ConfigRecord named `fedloom`; all arrays of a message are one safetensors blob in it"),
        ("types of arrays", "booleans, integers, floats"),
        ("size of a message", "at the door at most what its run's model needs; see below"),
        ("shape and type of an update", "those of the model that was sent, once decoded; finite values only"),
        ("`federation.encoding=float16`", "arrays of float32 are sent as float16"),
        (
            "`federation.encoding=int8`",
            f"an array `name` is sent as int8 `name{CODES}` of its shape, and float16 `name{SCALES}`, one above 0 for each"
            f" {BLOCK} numbers in C order",
        ),
        ("`steps`", "1 to the run's largest number of local steps"),
        ("`examples`", "at least 1"),
        ("`round`", "that of the request; other replies are left out of the round"),
        ("metrics and their weights", f"magnitude at most {MAX_PLAUSIBLE:g}; others are dropped with a note"),
        ("time of a reply", "`federation.deadline`; later replies are left out of the round"),
    ]


def _fields(kind: type[Any], kinds: Sequence[type[Any]]) -> str:
    hints, rows = get_type_hints(kind), []
    for field in fields(kind):
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        rows.append(
            (
                f"`{field.name}`" + (" (optional)" if has_default and field.name not in ("event", "time") else ""),
                _type(hints[field.name]),
                next(text for owner in (*kind.__mro__[:-1], *kinds) if (text := _meanings(owner).get(field.name))),
            )
        )
    return _table(("field", "type", "meaning"), rows)


def _type(hint: Any) -> str:
    """Return a type in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in WORDS:
        return WORDS[hint]
    if hint is events.ClientRound:
        return "[client of a round](#client-of-a-round)"
    if origin is Literal:
        return ", ".join(f"`{choice}`" if choice else "empty" for choice in parts)
    if origin is dict:
        return f"object: {_type(parts[0])} → {_type(parts[1])}"
    return f"list of {_type(parts[0])}" if origin is list else " or ".join(map(_type, parts))


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Return field -> its text, from the docstring's `Args` and from the strings behind the fields."""
    _, _, arguments = (inspect.getdoc(kind) or "").replace("None", "null").partition("Args:\n")
    return {**dict(re.findall(r"^ {4}(\w+): (.+)$", arguments, re.MULTILINE)), **field_texts(kind)}


def _summary(kind: type[Any]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\nArgs:")[0]


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAGES: dict[str, Callable[[], Iterator[str]]] = {"cli": cli, "options": options, "events": event_page, "wire": wire}


def make(name: str) -> str:
    """Return the Markdown of a page."""
    return "\n\n".join(filter(None, PAGES[name]())) + "\n"


if __name__ == "__main__":
    for page in PAGES:
        (REFERENCE / f"{page}.md").write_text(make(page), "utf-8")
