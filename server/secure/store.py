"""Folder `secure/` of a run: its roster, and the sum that is being opened, for `--resume`."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import DataError, StateError, WireError
from common.files import write_atomically
from common.secure.cards import HelperRoster
from common.secure.masking import CHECKS, Unsigned
from common.secure.terms import SumTerms
from server.record import folder as tensor_file
from server.round.spool import Spool

SUMS = "secure"
"""Name of the folder of a run's sums."""

TERMS = ".terms.json"
"""End of the name of a file with announced terms."""

GROUPS = "train.groups"
"""Part of the name of the file with the groups of a round."""


@dataclass(frozen=True)
class FixedSum:
    """Sum whose set of clients is final.

    Args:
        terms: Terms of the sum.
        boxes: Client -> its boxes in the order of the roster, and its commitment behind them; names ascend.
        steps: Client -> number of its local steps; empty for sums of other values.
        total: Sum of the masked uploads.
        checks: Sum of the clients' checks of each helper, without noise; else empty.
    """

    terms: SumTerms
    boxes: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, int]
    total: Unsigned
    checks: Unsigned

    @property
    def clients(self) -> list[str]:
        """Names of the set S, ascending."""
        return sorted(self.boxes)


def opened_size(terms: SumTerms) -> int:
    """Return the length of a helper's answer: without noise, sums of blinds follow the masks'."""
    return terms.size + (0 if terms.has_noise else CHECKS)


class SumStore:
    """Files of a run's secure sums, for the server's owner alone.

    Args:
        folder: The folder; it is created by the first write.
        run: Name of the run.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder, self._run = folder, run

    def write_roster(self, roster: HelperRoster) -> None:
        """Write the cards of the run's helpers."""
        self._write("roster.json", json.dumps(roster.to_json()).encode())

    def roster(self) -> HelperRoster | None:
        """Return the stored roster; None if there is none.

        Raises:
            StateError: The file is damaged.
        """
        path = self._folder / "roster.json"
        try:
            return HelperRoster.read(json.loads(path.read_text("utf-8")), self._run) if path.exists() else None
        except (WireError, ValueError, TypeError) as error:
            raise StateError(f"{path} is damaged ({error}); start a new run") from None

    def write_members(self, cards: Sequence[str]) -> None:
        """Write the cards of the members, in the order in which they joined."""
        self._write("members.json", json.dumps(cards).encode())

    def members(self) -> list[str]:
        """Return the stored cards of the members; empty if there are none.

        Raises:
            StateError: The file is damaged.
        """
        path = self._folder / "members.json"
        try:
            return [str(card) for card in json.loads(path.read_text("utf-8"))] if path.exists() else []
        except (OSError, ValueError, TypeError) as error:
            raise StateError(f"{path} is damaged ({error}); start a new run") from None

    def check_key(self) -> bytes:
        """Return the key of the checks of helpers' sums, drawn once for a run."""
        path = self._folder / "check.key"
        if not path.exists():
            self._write(path.name, secrets.token_bytes(32))
        return path.read_bytes()

    def announce(self, terms: SumTerms, clients: Sequence[str]) -> None:
        """Write the terms of a sum, and the clients that may pay for it."""
        content = {"terms": terms.to_json(), "clients": sorted(clients)}
        self._write(f"{_name(terms.round, terms.channel)}{TERMS}", json.dumps(content).encode())

    def announced(self, round_: int, channel: str) -> tuple[SumTerms | None, list[str]]:
        """Return the terms of an announced sum and its clients; None and no clients without valid ones."""
        try:
            content = json.loads((self._folder / f"{_name(round_, channel)}{TERMS}").read_text("utf-8"))
            return SumTerms.from_json(content["terms"]), [str(name) for name in content["clients"]]
        except (OSError, ValueError, KeyError, TypeError, WireError):
            return None, []

    def write_groups(self, round_: int, groups: Mapping[str, int]) -> None:
        """Write client -> group of a round."""
        self._write(f"{_name(round_, GROUPS)}.json", json.dumps(dict(groups)).encode())

    def groups(self, round_: int) -> dict[str, int]:
        """Return client -> group of a round; empty without a valid file."""
        try:
            content = json.loads((self._folder / f"{_name(round_, GROUPS)}.json").read_text("utf-8"))
            return {str(name): int(group) for name, group in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def fix(self, fixed: FixedSum) -> None:
        """Write a sum whose set is final, as one file: each has to reach the disk."""
        about = {"terms": fixed.terms.to_json(), "boxes": json.dumps(fixed.boxes), "steps": json.dumps(fixed.steps)}
        content = tensor_file.dump_tensors({"sum": fixed.total, "checks": fixed.checks}, about)
        self._write(f"{_name(fixed.terms.round, fixed.terms.channel)}.safetensors", content)

    def find(self, round_: int, channel: str) -> FixedSum | None:
        """Return the sum that is being opened; None if there is none, or it is damaged."""
        try:
            arrays, about = tensor_file.load_tensors(self._folder / f"{_name(round_, channel)}.safetensors")
            boxes = {client: tuple(sealed) for client, sealed in json.loads(about["boxes"]).items()}
            terms, steps = SumTerms.from_json(about["terms"]), json.loads(about["steps"])
            return FixedSum(terms, boxes, steps, arrays["sum"], arrays["checks"])
        except (OSError, ValueError, KeyError, StateError, WireError, DataError):
            return None

    def write_answers(self, terms: SumTerms, answers: Mapping[int, Unsigned]) -> None:
        """Write place in the roster -> answer of the helper, as one file."""
        content = tensor_file.dump_tensors({str(k): numbers for k, numbers in answers.items()}, {})
        self._write(f"{_name(terms.round, terms.channel)}.answers.safetensors", content)

    def answers(self, terms: SumTerms) -> dict[int, Unsigned]:
        """Return place in the roster -> answer, of helpers whose answer was written."""
        try:
            path = self._folder / f"{_name(terms.round, terms.channel)}.answers.safetensors"
            found = {int(k): numbers for k, numbers in tensor_file.load_tensors(path)[0].items()}
        except (StateError, ValueError):
            return {}
        return {k: numbers for k, numbers in found.items() if numbers.shape == (opened_size(terms),)}

    def spool(self) -> Spool:
        """Return a store of the uploads of one sum until it is opened."""
        return Spool(self._folder.parent)

    def next_number(self, channel: str) -> int:
        """Return a number that no sum of the channel had, also before a restart."""
        path = self._folder / f"{channel}-number.json"
        number = 1 + (json.loads(path.read_text("utf-8")) if path.exists() else 0)
        self._write(path.name, json.dumps(number).encode())
        return int(number)

    def clear(self, round_: int, *channels: str) -> None:
        """Remove the files of sums up to a round, but for its terms: a crash may repeat the round."""
        names = tuple(channel.replace("/", "-") for channel in channels)
        for path in self._folder.glob("??????-*"):
            before = round_ if path.name.endswith(TERMS) else round_ + 1
            if path.name[7:].partition(".")[0] in names and path.name[:6].isdigit() and int(path.name[:6]) < before:
                path.unlink(missing_ok=True)

    def clear_after(self, round_: int) -> None:
        """Remove the files of sums of later rounds, but for terms: clients may have paid for them."""
        for path in self._folder.glob("??????-*"):
            if path.name[:6].isdigit() and int(path.name[:6]) > round_ and not path.name.endswith(TERMS):
                path.unlink(missing_ok=True)

    def _write(self, name: str, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self._folder / name, content, mode=0o600)


def _name(round_: int, channel: str) -> str:
    return f"{round_:06d}-{channel.replace('/', '-')}"
