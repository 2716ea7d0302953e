"""Report on a data source in words."""

import re
from collections.abc import Iterator

from client.data.summary import Nouns, amount
from client.data.tables.cell_errors import escape
from common.text import count
from deploy.data_report import ClientShare, DataReport, FileReport, LearningReport, Quantiles

EXAMPLE = re.compile(r" \('.*' is .*\)$", re.MULTILINE)
"""Cell and value of a decision, which differ between files of one form."""
MOST_FILES, MOST_TITLES, MOST_CLIENTS = 10, 12, 10
"""Forms of files, ignored columns and clients that are shown."""


def lines_of(report: DataReport) -> Iterator[str]:
    """Yield the lines of a report."""
    yield f"{escape(report.data, 200)} as data of task {report.task}"
    yield ""
    yield from _rows(report)
    yield from _contents(report)
    yield from _forms(report.files)
    if report.learning:
        yield from _learning(report.learning, report)
    yield from _clients(report)


def _rows(report: DataReport) -> Iterator[str]:
    if report.files:
        files = f" from {count(len(report.files), 'file')}" if len(report.files) > 1 else ""
        yield f"{count(report.rows, 'row')} read{files}"
    for dropped in report.dropped:
        yield f"  {dropped}{f'; the first: {dropped.example}' if dropped.example else ''}"
    for note in report.notes:
        yield f"  {note}"


def _contents(report: DataReport) -> Iterator[str]:
    totals = report.learning.totals if report.learning else {}
    parts = [amount(report.units, report.unit), *(count(number, noun) for noun, number in totals.items())]
    dates = f"; {report.first} to {report.last}" if report.first else ""
    yield f"{', '.join(parts)}{dates}"


def _forms(files: tuple[FileReport, ...]) -> Iterator[str]:
    """Yield how files were read; equal forms once."""
    groups: dict[str, list[FileReport]] = {}
    for file in files:
        groups.setdefault(EXAMPLE.sub("", "\n".join(_form(file))), []).append(file)
    for group in list(groups.values())[:MOST_FILES]:
        first, form = group[0].path, list(_form(group[0]))
        if form:
            yield ""
            yield (
                "Read as"
                if len(groups) == 1
                else f"Read as, in {first} and {len(group) - 1} more"
                if group[1:]
                else f"Read as, in {first}"
            )
            yield from (f"  {line}" for line in form)
    if len(groups) > MOST_FILES:
        yield f"… and {len(groups) - MOST_FILES} further forms of files"


def _form(file: FileReport) -> Iterator[str]:
    if file.separator:
        yield f"cells separated by {file.separator if file.separator.isalpha() else repr(file.separator)}"
    if not file.has_header:
        yield "no header: columns by their position"
    for title, name in file.aliases.items():
        yield f"column '{title}' is {name}"
    yield from file.decisions
    if file.ignored:
        more = [f"and {len(file.ignored) - MOST_TITLES} more"][: len(file.ignored) > MOST_TITLES]
        yield f"not read: {', '.join([*(f'{title!r}' for title in file.ignored[:MOST_TITLES]), *more])}"


def _learning(learning: LearningReport, report: DataReport) -> Iterator[str]:
    yield ""
    yield _distribution(learning.record[1], learning.records, report.unit[1])
    if learning.example != learning.record:
        yield _distribution(f"{learning.example[1]} to train on", learning.train, report.unit[1])
    yield f"{learning.median[0].upper()}{learning.median[1:]}."
    for number, purpose in ((learning.trainable, "to train on"), (learning.tested, "for the test")):
        if not number:
            yield f"No {report.unit[0]} has {learning.example[1]} {purpose}."
        elif number < report.units:
            lack = amount(report.units - number, ("has", "have"))
            yield f"{lack.replace(' ', f' of {report.units:,} {report.unit[1]} ', 1)} no {learning.example[1]} {purpose}."
    if min(learning.trainable, learning.tested) < report.units:
        yield f"Note: {learning.need}."
    for remark in learning.remarks:
        yield f"  {remark}"


def _distribution(noun: str, found: Quantiles, units: str) -> str:
    """Return quantiles over units in one line."""
    return (
        f"{noun[0].upper()}{noun[1:]} of the {units}: least {found.least:,}, quarter {found.quarter:,}, "
        f"median {found.median:,}, three quarters {found.three_quarters:,}, most {found.most:,}"
    )


def _clients(report: DataReport) -> Iterator[str]:
    """Yield the clients with too little."""
    if not report.clients:
        return
    example = report.learning.example if report.learning else ("example", "examples")
    poor = [client for client in report.clients if not (client.train and client.test)]
    yield ""
    yield f"With {count(len(report.clients), 'client')}: " + (
        f"{len(poor):,} would have too little" if poor else f"each has {example[1]} to train on and for the test"
    )
    yield from (f"  {_poor(client, report, example)}" for client in poor[:MOST_CLIENTS])
    if len(poor) > MOST_CLIENTS:
        yield f"  … and {len(poor) - MOST_CLIENTS} more"


def _poor(client: ClientShare, report: DataReport, example: Nouns) -> str:
    return (
        f"{client.client} ({amount(client.units, report.unit)}): {amount(client.train, example)} to train on, "
        f"{client.test:,} for the test"
    )
