"""Progress of a run: following and printing its events."""

import io
import math
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from deploy.pages.terminal import follow, round_line, show
from server.record.events import Event, Finish, Refusal, RoundEvent, Start, Waiting, event_to_line

START = Start(run="r1", method="fedrule", task="rules", model="default", seed=0, rounds=100)
ROUND = RoundEvent(
    round=12,
    rounds=100,
    loss=0.2134,
    metrics={"loss": 0.25, "auc": 0.984, "mr0": 3.1, "mr1": 4.1, "hr20": 0.21, "hr40": 0.4},
    seconds=0.418,
    answered=4,
    asked=4,
    bytes_down=412_000,
    bytes_up=410_000,
    selection=0.2,
    median_loss=0.25,  # numbers, for NaN equals no NaN
)
FINISH = Finish(status="completed")
LINE = "round  12/100 · train loss 0.213  auc 0.984  mr 3.10  hr@20 0.210   0.42 s  4/4 clients  ↓412 kB ↑410 kB"


def plain(events: list[Event], terminal: bool = False) -> tuple[str, Finish | None]:
    out = io.StringIO()
    finish = show(events, Console(file=out, width=60, force_terminal=terminal, color_system=None))
    return out.getvalue(), finish


def test_a_round_as_a_line() -> None:
    assert round_line(ROUND).plain == LINE


def test_a_forecaster_s_round_as_a_line() -> None:
    extra = dict.fromkeys(("cluster_loss", "cluster_mse", "cluster_teacher_mse", "profile_mse", "property_width"), 1.0)
    truth = {"truth_rho_trace": 0.9, "truth_rho_point": 0.9, "rho_point": 0.9, "teacher_rho_trace": 1.0}
    metrics = {**extra, **truth, "loss": 0.3, "mse": 0.25, "teacher_mse": 0.2375, "rho_trace": 0.5}
    line = round_line(RoundEvent(**vars(ROUND) | {"metrics": metrics})).plain
    assert line.startswith("round  12/100 · train loss 0.213  mse 0.2500  teacher mse 0.2375  satisfied 0.500   0.42 s")


def test_a_round_that_was_not_evaluated_or_diverged() -> None:
    line = round_line(
        RoundEvent(round=1, rounds=9, loss=math.nan, seconds=2, answered=1, asked=1, bytes_down=0, bytes_up=0)
    ).plain
    assert line == "round 1/9 ·  2.00 s  1/1 clients  ↓0 B ↑0 B"


def test_a_round_with_noise_shows_what_is_left_instead_of_a_loss() -> None:
    noisy = {"loss": math.nan, "metrics": {"rmse": 0.1873}, "server": {"cost": 0.01553, "left": 0.614}}
    line = "round  12/100 · rmse 0.1873  privacy budget 61 % left   0.42 s  4/4 clients  ↓412 kB ↑410 kB"
    assert round_line(RoundEvent(**vars(ROUND) | noisy), Start(**vars(START) | {"account": "zcdp"})).plain == line


def test_a_round_names_the_split_of_its_metrics_if_a_run_has_two() -> None:
    line = "· train loss 0.213  validation: auc 0.984  mr 3.10  hr@20 0.210   0.42 s"
    assert line in round_line(RoundEvent(**vars(ROUND) | {"split": "validation"})).plain
    assert line.replace("validation", "test") in round_line(RoundEvent(**vars(ROUND) | {"split": "test"})).plain


def test_a_loss_that_is_no_error_is_omitted() -> None:
    begins = Start(**vars(START) | {"task": "ratings"})
    event = RoundEvent(**vars(ROUND) | {"loss": -0.17, "metrics": {"rmse": 0.1873}})
    assert plain([begins, event])[0].splitlines()[1].startswith("round  12/100 · rmse 0.1873   0.42 s")
    paper = Start(**vars(begins) | {"model": "paper"})
    assert "· train loss -0.170  rmse" in round_line(event, paper).plain


def test_the_remark_of_a_task_stands_below_the_start() -> None:
    text, _ = plain([Start(**vars(START) | {"remark": "few homes"}), ROUND, Finish(status="completed")])
    assert text.splitlines()[1] == "remark: few homes"


def test_an_early_end_is_shown_as_completed() -> None:
    text, finish = plain(
        [START, ROUND, Finish(status="completed", reason="ended early: no client can pay another round")]
    )
    assert text.splitlines()[-1] == "completed after 12 rounds · ended early: no client can pay another round"
    assert finish is not None
    assert finish.status == "completed"


def test_lost_clients_are_listed_with_their_reasons() -> None:
    reason = "method 'fedavg' is not allowed by its policy\nTraceback: much more"
    event = RoundEvent(**vars(ROUND) | {"answered": 2, "missing": ["client-3"], "refused": {"client-2": reason}})
    lost = "client-3: no answer; client-2: method 'fedavg' is not allowed by its policy"
    assert round_line(event).plain.endswith(f"  2/4 clients ({lost})  ↓412 kB ↑410 kB")


def test_a_log_gets_plain_unwrapped_lines() -> None:
    text, finish = plain([START, ROUND, FINISH])
    assert text.splitlines() == [
        "fedrule on rules · model default · 100 rounds · seed 0 · run r1",
        LINE,
        "completed after 12 rounds",
    ]
    assert finish == FINISH


def test_markup_in_a_reason_is_shown_verbatim() -> None:
    text, _ = plain([Finish(status="failed", reason="[red]1 of 4[/red] answered")])
    assert text == "failed after 0 rounds: [red]1 of 4[/red] answered\n"


def test_a_terminal_gets_a_bar_below_the_lines() -> None:
    text, _ = plain([START, ROUND, FINISH], terminal=True)
    assert "12/100" in text
    assert "━" in text
    assert "auc 0.984" in text


def test_a_run_that_ends_without_a_finish() -> None:
    assert plain([START, ROUND])[1] is None
    assert plain([]) == ("", None)


def writer(path: Path, chunks: list[bytes]) -> Callable[[float], None]:
    """Append a chunk at each sleep."""

    def sleep(seconds: float) -> None:
        assert chunks, "follow waits after the last chunk"
        with path.open("ab") as file:
            file.write(chunks.pop(0))

    return sleep


def test_follow_waits_for_the_file_and_for_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    start, round_, finish = event_to_line(START), event_to_line(ROUND), event_to_line(FINISH)
    chunks = [b"", start + round_[:30], round_[30:], b'{"torn\n' + finish + start]
    assert list(follow(path, sleep=writer(path, chunks))) == [START, ROUND, FINISH]


def test_follow_skips_events_from_before_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(event_to_line(START) + event_to_line(Finish(status="failed")))
    sleep = writer(path, [event_to_line(ROUND), event_to_line(FINISH)])
    assert list(follow(path, start=path.stat().st_size, sleep=sleep)) == [ROUND, FINISH]


def test_follow_ends_with_its_writer_after_the_remaining_events(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    alive = iter([True, False])
    sleep = writer(path, [event_to_line(START) + event_to_line(ROUND)])
    assert list(follow(path, going_on=lambda: next(alive), sleep=sleep)) == [START, ROUND]


def test_a_client_that_is_gone_is_named_with_its_last_round() -> None:
    event = RoundEvent(**vars(ROUND) | {"answered": 1, "asked": 2, "missing": ["client-1"], "gone": {"client-1": 9}})
    assert "1/2 clients (client-1 gone since round 9)" in round_line(event).plain
    now = RoundEvent(**vars(event) | {"gone": {"client-1": 12}})
    assert "1/2 clients (client-1: no answer)" in round_line(now).plain


def test_many_lost_clients_are_counted() -> None:
    event = RoundEvent(**vars(ROUND) | {"missing": [f"client-{k}" for k in range(300)]})
    assert "client-7: no answer; and 292 more)" in round_line(event).plain


def test_texts_of_clients_cannot_control_the_terminal() -> None:
    event = RoundEvent(**vars(ROUND) | {"refused": {"client-1": "\x1b[2Jgone\x07"}})
    assert "(client-1: �gone�)" in round_line(event).plain


def test_a_wait_is_one_line_until_something_changes() -> None:
    one, two = (Waiting(online=[f"client-{k}" for k in range(n)], wanted=3, until=1.0) for n in (1, 2))
    text, _ = plain([one, one, one, two, START, ROUND])
    assert text.splitlines()[:3] == [
        "waiting for clients: 1 connected, 3 required (client-0)",
        "waiting for clients: 2 connected, 3 required (client-0, client-1)",
        "fedrule on rules · model default · 100 rounds · seed 0 · run r1",
    ]


def test_a_wait_counts_refusals_by_their_reasons() -> None:
    names = [f"shop-{k}" for k in range(3)]
    text, _ = plain([Waiting(online=names, wanted=3, until=1.0, refused={"the data do not match": 3})])
    line = "waiting for clients: 0 take part, 3 required; 3 refused: the data do not match (shop-0, shop-1, shop-2)"
    assert text == f"{line}\n"


def test_a_refusal_is_a_line_with_its_remedy() -> None:
    text, _ = plain([Refusal(client="ann\x1b[2J", reason=f"{'an older copy ' * 20}; restore it\x07")])
    assert text == f"refused ann�: {'an older copy ' * 20}; restore it�\n"


def test_a_reason_that_many_clients_share_is_said_once_with_their_number() -> None:
    refused = [Refusal(client=f"c{k}", reason="no" if k else "never") for k in range(600)]
    text, _ = plain([*refused, START, ROUND])
    assert text.splitlines()[:3] == ["refused c0: never", "refused c1: no", "refused for the reason of c1: 598 more"]
    long = {f"c{k}": f"update of norm {k}.5e+03, {k} times the typical 3.5" for k in range(20)}
    alike = plain([START, RoundEvent(**vars(ROUND) | {"refused": long})])[0]
    assert "c6, c7 and 12 more: update of norm 0.5e+03, 0 times the typical 3.5, and the like)" in alike
    event = RoundEvent(**vars(ROUND) | {"refused": {f"c{k}": "loss is NaN" for k in range(600)}})
    assert f"({', '.join(f'c{k}' for k in range(8))} and 592 more: loss is NaN)" in round_line(event).plain
