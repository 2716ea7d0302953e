"""Log of a client in its owner's words: one line of text a round."""

import time
from collections.abc import Iterator, Sequence

from client.owner.journal import RequestEntry
from common.text import count, printable, size

SHOWN_NUMBERS = 4
"""Maximum number of plaintext numbers in a log line; the journal has all."""

HOLD_SECONDS = 2.0
"""Time to wait for further requests of a round before its log line."""

UPDATES = {
    "train": "model update",
    "assign": "scores of models",
    "names": "names",
    "evaluate": "sums of comparisons with baselines",
}
"""Noun of the arrays in a reply, by kind of the request."""

MASKED_SUM = "masked/sum"
"""Name of the array in an upload to a secure sum."""


class RoundLog:
    """Acknowledged entries of the round under way; their log line follows the round's last request."""

    def __init__(self) -> None:
        self._entries: list[RequestEntry] = []
        self._changed = 0.0
        self._enrolled = self._refused = ""

    def add(self, entry: RequestEntry) -> Iterator[str]:
        """Add an entry; yield the lines that are complete by now. A helper's answers have none here."""
        if entry.asked in ("helper", "prepare", "open") and not entry.refused:
            return
        if entry.refused or entry.asked == "enrol":
            yield from self.flush()
            yield from self._announce(entry)
            return
        if self._entries and (entry.run, entry.round) != (self._entries[-1].run, self._entries[-1].round):
            yield from self.flush()
        self._entries.append(entry)
        self._changed = time.monotonic()
        if entry.asked in ("names", "evaluate"):
            yield from self.flush()

    def _announce(self, entry: RequestEntry) -> Iterator[str]:
        """Yield the line of an enrolment or a refusal, unless the same was logged since the last round."""
        if entry.refused:
            if (line := refusal(entry)) != self._refused:
                yield line
            self._refused = line
        elif (line := round_line([entry])) != self._enrolled:
            yield line
            self._enrolled = line

    def flush(self, *, after: float = 0.0) -> Iterator[str]:
        """Yield the line of the round, if its last entry is at least `after` seconds old."""
        if self._entries and time.monotonic() >= self._changed + after:
            entries, self._entries, self._refused = self._entries, [], ""
            yield round_line(entries)


def round_line(entries: Sequence[RequestEntry]) -> str:
    """Return the line of a round: the work, all that left this machine, and its cost."""
    last = entries[-1]
    of = f"/{last.rounds}" if last.rounds else ""
    in_round = f" round {last.round}{of}" if last.round else ""
    work = "; ".join(dict.fromkeys(_work(entry) for entry in entries))
    return f"run {printable(last.run, 80)}{in_round}: {work}. {_left(entries)}"


def refusal(entry: RequestEntry) -> str:
    """Return the line of a refused request."""
    reason = printable(entry.refused).replace("this client's", "your").replace("the owner can", "you can")
    reason = reason.replace("the policy", "your policy")
    spent = f"ε {entry.epsilon_spent:.3g} was spent" if entry.epsilon_spent else "nothing was spent"
    run = f"run {printable(entry.run, 80)} " if entry.run else ""
    return f"{run}refused: {reason}. Nothing left, {spent}"


def amount(epsilon: float) -> str:
    """Return an ε with three digits; less than 0.0005, as rounding leaves behind, is 0."""
    return f"{epsilon if epsilon >= 5e-4 else 0:.3g}"


def _work(entry: RequestEntry) -> str:
    match entry.asked:
        case "train":
            return f"trained on {count(entry.records, 'record')}, {entry.seconds:.1f} s"
        case "enrol":
            return f"takes part in task {entry.task} by method {entry.method}, {count(entry.rounds, 'round')}"
        case "assign":
            return "compared models on the data"
        case "names":
            return "listed names in the data"
        case "evaluate":
            return "measured the model" if entry.clear else "received the model"
        case _:
            return "answered a message"


def _left(entries: Sequence[RequestEntry]) -> str:
    sent = [_arrays(entry) for entry in entries if entry.tensors]
    numbers = {name: value for entry in entries for name, value in entry.clear.items()}
    if numbers:
        sent.append(_numbers(numbers))
    return f"Left this machine: {', and '.join(sent)}" if sent else "Nothing left this machine"


def _arrays(entry: RequestEntry) -> str:
    what = UPDATES.get(entry.asked, "arrays")
    is_masked = MASKED_SUM in entry.tensors
    what = f"{size(entry.sent_bytes)} {'masked ' * is_masked}{what}"
    if not entry.noised:
        return f"{what}, without noise"
    left = (
        f"; {amount(entry.epsilon_left_run or 0)} of this run's {entry.epsilon_run:g} left" if entry.epsilon_run else ""
    )
    total = f", {amount(entry.epsilon_left_total)} of yours" if entry.epsilon_left_total is not None else ""
    noise = "with the helpers' noise on its sum" if is_masked else "noised"
    return f"{what}, {noise} (ε {entry.epsilon_spent:.3g}{left}{total})"


def _numbers(numbers: dict[str, float]) -> str:
    shown = list(numbers.items())[:SHOWN_NUMBERS]
    named = [f"{name.removeprefix('metrics/').replace('/', ' ')} {value:.3g}" for name, value in shown]
    more = ", …" if len(numbers) > SHOWN_NUMBERS else ""
    return f"{count(len(numbers), 'number')} in plaintext: {', '.join(named)}{more}"
