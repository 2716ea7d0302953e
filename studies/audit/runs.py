"""Runs of the audit.

Noise has the operating system's entropy, as at every client. Runs cannot be repeated bit for bit.
"""

import time
from collections.abc import Callable
from functools import partial

from studies.audit.cases import (
    FAULTY_CASES,
    MEMBERS,
    ONE_RUN_SEEDS,
    ONE_RUNS,
    OPENED,
    SOUND_CASES,
    UPLOAD_SEEDS,
    UPLOADS,
)
from studies.audit.mechanisms import audit
from studies.audit.members import guess_members
from studies.audit.one_run import audit_one_run
from studies.audit.open_sums import attack_sum
from studies.audit.uploads import read_names
from studies.harness.row import Metrics, Trial
from studies.harness.store import Store
from studies.harness.study import Selection


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; seeds of one-run audits are those of coins and initial models."""
    for upload in (*UPLOADS, *MEMBERS) if selection.has_set("uploads") else ():
        if selection.has(upload.key.row, upload.key.protocol):
            attack = guess_members if upload in MEMBERS else read_names
            for seed in range(min(UPLOAD_SEEDS, selection.most)):
                work = partial(_timed, partial(attack, upload, seed))
                store.get_or_compute(upload.key, seed, work, upload.title)
    for opened in OPENED if selection.has_set("sums") else ():
        if selection.has(opened.key.row, opened.key.protocol):
            for seed in range(min(UPLOAD_SEEDS, selection.most)):
                store.get_or_compute(opened.key, seed, partial(_timed, partial(attack_sum, opened, seed)), opened.title)
    for run in ONE_RUNS if selection.has_set("record") else ():
        if selection.has(run.key.row, run.key.protocol):
            for seed in range(min(ONE_RUN_SEEDS, selection.most)):
                store.get_or_compute(run.key, seed, partial(_timed, partial(audit_one_run, run, seed)), run.key.row)
    for case in (*FAULTY_CASES, *SOUND_CASES) if selection.has_set("client") else ():
        if selection.has(case.key.row, case.key.protocol):
            work = partial(_timed, partial(audit, case))
            store.get_or_compute(case.key, 0, work, case.key.row)


def _timed(work: Callable[[], Metrics]) -> Trial:
    started = time.perf_counter()
    metrics = work()
    return Trial(metrics, seconds=time.perf_counter() - started)
