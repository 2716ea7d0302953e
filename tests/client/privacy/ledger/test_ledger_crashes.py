"""Processes that are killed while they release, and two that share one ledger: every release was paid, none twice for free."""

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from client.privacy.ledger.database import create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord
from common.privacy.accounts import Zcdp, rho_of
from tests.support.ledgers import opened, record_of, refuses, spend

PARTS = 400

RELEASING = """
import hashlib, os, random, secrets, signal, sys, time
from pathlib import Path
from client.privacy.ledger.ledger import Ledger, Slot
from client.privacy.ledger.roll_back import RollbackRecord
from common.errors import RefusedError
from common.privacy.accounts import Zcdp
from common.privacy.mechanisms import Gaussian

folder, run, first, last = Path(sys.argv[1]), sys.argv[2], 0, int(sys.argv[3])
sent = os.open(folder / f"sent-{run}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def release(first, last):
    ledger = Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "record.json"))
    terms = ledger.terms(Gaussian(ledger.total / 400 * (1 - 1e-12), 1.0))
    for number in range(first, last):
        try:
            content = ledger.release(Slot(run, number), terms, lambda: secrets.token_bytes(3000))
        except RefusedError:
            return
        os.write(sent, f"{number} {hashlib.sha256(content).hexdigest()}\\n".encode())
"""

KILLING = (
    RELEASING
    + """
kills, chance = int(sys.argv[4]), random.Random(0)
while kills:
    done = [int(line.split()[0]) for line in open(folder / f"sent-{run}")]
    child = os.fork()
    if not child:
        release(max(done[-1] - 3, 0) if done else 0, last)
        os._exit(0)
    time.sleep(chance.uniform(0.01, 0.15))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills -= 1
child = os.fork()
if not child:
    release(0, last)
    os._exit(0)
os.waitpid(child, 0)
"""
)

TOGETHER = (
    RELEASING
    + """
release(0, 1)
while sum(file.stat().st_size > 0 for file in folder.glob("sent-*")) < 2:  # each has had its first: neither can come too late
    time.sleep(0.001)
release(1, last)
"""
)

ANSWERING = """
import hashlib, os, random, signal, sys, time
from itertools import chain, repeat
from pathlib import Path
from client.owner.policy import Policy
from client.privacy.release import Releaser
from client.privacy.ledger.locate import open_ledger
from client.session import Session
from client.state import DiskStore
from common.config.parse import to_json
from common.models import parameters
from common.privacy.accounts import rho_of
from common.wire.codec import encode
from common.wire.messages import EnrolRequest, TrainRequest
from tests.support.asked import configured, learner
from tests.support.build import task_model
from tests.support.toys import CATALOGUE

folder, last, kills, chance = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), random.Random(0)
asked, sent = (os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in ("asked", "sent"))
config = configured()
model, cost = parameters(task_model(config, CATALOGUE)), rho_of(10, 1e-5) / 100

def client():
    def ledger(unit, account):
        return open_ledger(str(folder / "homes.csv"), folder / "state", "0" * 64, unit, account, 10.0, 1e-5, alone=True)
    return Session("ann", learner, DiskStore(folder / "state" / "ann"), Releaser(Policy(max_epsilon=10.0), ledger))

def answer(enrolment, first, more):
    session = client()
    for number in chain(range(first, last + 1), repeat(last, more)):
        os.write(asked, f"{number}\\n".encode())
        for again in range(2):
            reply = encode(session.train(TrainRequest(number, enrolment, model, cost=cost)))["fedloom"]
            digest = hashlib.sha256(repr(sorted(reply.items())).encode()).hexdigest()
            os.write(sent, f"{number} {digest}\\n".encode())
    os._exit(0)

def started(more):
    numbers = [int(line) for line in open(folder / "asked")]
    child = os.fork()
    return child or answer(enrolment, max(numbers, default=1), more)

def replies():
    return (folder / "sent").read_bytes().count(b"\\n")

enrolment = client().enrol(EnrolRequest("toy", to_json(config), CATALOGUE.to_json())).enrolment
for _ in range(kills):
    child, enough = started(10**6), replies() + chance.randrange(6)
    while replies() < enough:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        sys.exit("a client ended before it was killed")
sys.exit(os.waitpid(started(0), 0)[1])
"""


def started(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"})


def reopened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "record.json"))


def sent(folder: Path, run: str = "") -> dict[int, list[str]]:
    """Digests of what was sent of each round."""
    found: dict[int, list[str]] = defaultdict(list)
    for line in (folder / (f"sent-{run}" if run else "sent")).read_text().splitlines():
        number, digest = line.split()
        found[int(number)].append(digest)
    return found


def test_whenever_a_client_is_killed_all_that_was_sent_is_charged(tmp_path: Path) -> None:
    """30 kills at random moments over 200 rounds; the last process asks for all rounds again."""
    create(tmp_path / "ledger", "lineage")
    assert started(KILLING, tmp_path, "run", 200, 30).wait(120) == 0
    ledger, digests = reopened(tmp_path), sent(tmp_path, "run")
    cost = ledger.total / PARTS * (1 - 1e-12)
    assert sorted(digests) == list(range(200))
    assert all(len(set(all_of)) == 1 for all_of in digests.values()), "a retry sends the same bytes"
    assert sum(map(len, digests.values())) > 200 + 30, "rounds were asked for again"
    rows = ledger.entries()
    released = sum(row.status == "released" for row in rows)
    assert 200 <= released <= len(rows) <= 200 + 30
    assert ledger.spent() >= 200 * cost * (1 - 1e-12)
    assert abs(ledger.spent() - len(rows) * cost) < 1e-9


def test_whenever_a_whole_client_is_killed_every_reply_that_was_sent_is_charged(tmp_path: Path) -> None:
    """8 kills over 30 rounds of `Session.train`, each round asked twice, and the last one again by who restarts the client."""
    (tmp_path / "homes.csv").write_text("home,rule\n")
    assert started(ANSWERING, tmp_path, 30, 8).wait(120) == 0
    about = (str(tmp_path / "homes.csv"), tmp_path / "state", "0" * 64)
    ledger, digests = open_ledger(*about, "client", Zcdp(), 10.0, 1e-5), sent(tmp_path)
    rows = ledger.entries()
    cost = rho_of(10, 1e-5) / 100
    assert sorted(digests) == list(range(1, 31))
    assert all(len(set(all_of)) == 1 for all_of in digests.values()), "asked again, the same bytes"
    assert len({all_of[0] for all_of in digests.values()}) == 30, "fresh noise in every round"
    assert sum(map(len, digests.values())) >= 2 * 30
    assert {row.slot.round for row in rows if row.status == "released"} == set(digests)
    assert len(rows) <= 30 + 8
    assert ledger.spent() == pytest.approx(len(rows) * cost)
    assert ledger.spent() >= 30 * cost * (1 - 1e-6)


def test_two_processes_share_one_budget(tmp_path: Path) -> None:
    create(tmp_path / "ledger", "lineage")
    both = [started(TOGETHER, tmp_path, run, PARTS) for run in ("one", "two")]
    assert [process.wait(120) for process in both] == [0, 0]
    ledger = reopened(tmp_path)
    counts = [len(sent(tmp_path, run)) for run in ("one", "two")]
    assert sum(counts) == len(ledger.entries()) == PARTS
    assert min(counts) > 0
    assert ledger.total * (1 - 1e-9) <= ledger.spent() <= ledger.total


def test_an_older_copy_is_noticed_and_the_newest_goes_on(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 5)
    ledger.close()
    (folder / "ledger").rename(folder / "newest")
    (folder / "older").rename(folder / "ledger")
    refuses(folder, "older copy")
    (folder / "newest").rename(folder / "ledger")
    assert opened(folder).spent() == pytest.approx(0.05)


def test_an_older_copy_that_went_another_way_is_noticed(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 4)
    ledger.close()
    (folder / "older").rename(folder / "ledger")
    other = Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "elsewhere.json"))
    spend(other, 10, 15)
    other.close()
    refuses(folder, "older copy")


def test_a_log_that_was_lost_is_noticed(folder: Path) -> None:
    """The write-ahead log holds the newest rows until the ledger is closed."""
    ledger = opened(folder)
    spend(ledger, 3, 5)
    for name in ("ledger", "ledger-wal", "state/record.json"):
        shutil.copy(folder / name, folder / f"{Path(name).name}-copy")
    ledger.close()
    crashed = folder / "crashed"
    (crashed / "state").mkdir(parents=True)
    shutil.copy(folder / "ledger-copy", crashed / "ledger")
    shutil.copy(folder / "record.json-copy", crashed / "state" / "record.json")
    refuses(crashed, "lacks releases")
    shutil.copy(folder / "ledger-wal-copy", crashed / "ledger-wal")
    assert opened(crashed).spent() == pytest.approx(0.05)


def test_a_record_that_fell_behind_catches_up(folder: Path) -> None:
    record = record_of(folder)
    before = record.read()
    ledger = opened(folder)
    spend(ledger, 3, 5)
    assert before is not None
    record.write(before)
    assert opened(folder).spent() == pytest.approx(0.05)
    head = record.read()
    assert head is not None
    assert (head.sequence, head.lineage) == (5, "lineage")
    assert dict(head.spent) == {"client": pytest.approx(0.05)}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"lineage": 1}', b"\xff\xfe"])
def test_a_damaged_record_is_an_error(content: bytes, folder: Path) -> None:
    (folder / "state" / "record.json").write_bytes(content)
    refuses(folder, "cannot read the roll-back record")


def test_a_record_is_overwritten_in_place_whole(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    assert record.read() is None
    for head in (LedgerHead("l", "/a", 10**9, "f" * 64, (("client", 1 / 3),)), LedgerHead("l", "/b")):
        record.write(head)
        assert (record.read(), record.path.stat().st_size) == (head, 2048)
    assert record.path.stat().st_mode & 0o777 == 0o600
    long = LedgerHead("l", "/" + "x" * 4000)
    record.write(long)
    assert record.read() == long
