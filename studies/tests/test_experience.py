"""`python -m studies.experience first` times `make demo` of the last commit in a fresh clone."""

import json
import subprocess
from pathlib import Path

import pytest

from studies import experience

DEMO = "demo:\n\t@test -z \"$$PYTHONPATH$$FEDLOOM_RUNS\"\n\t@echo round 1\n\t@sleep 0.6\n\t@echo 'metric   final'\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository whose last commit demonstrates, and whose working tree fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "of this process")
    monkeypatch.setenv("FEDLOOM_RUNS", "of this process")
    monkeypatch.setenv("MAKELEVEL", "1")
    monkeypatch.setenv("MAKEFLAGS", "w")
    subprocess.run(["git", "init", "--quiet"], check=True)
    _commit(DEMO)
    Path("Makefile").write_text("demo:\n\t@false\n")
    return tmp_path


def _commit(makefile: str) -> None:
    Path("Makefile").write_text(makefile)
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "add", "Makefile"], check=True)
    subprocess.run(["git", *person, "commit", "--quiet", "--message", "demo"], check=True)


def test_the_first_result_table_of_a_clone_is_timed_and_stored(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stored = repository / "experience.json"
    stored.write_text('{"serve": {"p95_ms": 1.5}}')
    monkeypatch.setattr(experience, "RESULTS", stored)
    experience.main(["first"])
    found = json.loads(stored.read_text())
    assert found["serve"] == {"p95_ms": 1.5}
    assert 1 <= found["first"]["table_seconds"] <= found["first"]["seconds"] < experience.LIMIT_FIRST_SECONDS
    assert found["first"]["within_limit"]
    printed = capfd.readouterr()
    assert json.loads(printed.out) == found["first"]
    assert printed.err.splitlines() == ["round 1", "metric   final"]


@pytest.mark.parametrize("makefile", [f"{DEMO}\t@exit 3\n", "demo:\n\t@echo no table\n"])
def test_a_demo_that_fails_or_shows_no_table_is_not_timed(repository: Path, makefile: str) -> None:
    _commit(makefile)
    with pytest.raises(SystemExit, match="no result table"):
        experience.first()
