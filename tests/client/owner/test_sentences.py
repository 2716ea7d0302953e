"""Log lines in the owner's words."""

from dataclasses import replace

from client.owner.journal import RequestEntry
from client.owner.sentences import RoundLog, refusal, round_line

TRAINED = RequestEntry(
    "1",
    "2026-11-23T12:04:31+00:00",
    "client-0",
    run="20261122-fedrule",
    round=12,
    rounds=30,
    asked="train",
    records=98,
    sent_bytes=81_600,
    tensors={"update/w": (4,)},
    noised=True,
    epsilon_spent=0.31,
    epsilon_run=10,
    epsilon_left_run=6.9,
    epsilon_left_total=14.2,
    seconds=0.4,
)
MEASURED = replace(
    TRAINED, id="2", asked="evaluate", tensors={}, noised=False, clear={"metrics/loss": 0.213, "metrics/auc": 0.91}
)


def test_a_round_is_one_line_with_all_that_left_the_machine() -> None:
    assert round_line([TRAINED, MEASURED]) == (
        "run 20261122-fedrule round 12/30: trained on 98 records, 0.4 s; measured the model. Left this machine: 81.6 kB model"
        " update, noised (ε 0.31; 6.9 of this run's 10 left, 14.2 of yours), and 2 numbers in plaintext: loss 0.213, auc 0.91"
    )


def test_an_update_without_noise_is_named_as_such() -> None:
    plain = replace(TRAINED, noised=False, clear={"loss": 0.5})
    assert "81.6 kB model update, without noise, and 1 number in plaintext: loss 0.5" in round_line([plain])


def test_scores_of_models_are_named_by_their_model() -> None:
    assessed = replace(TRAINED, asked="assign", tensors={}, noised=False, clear={"losses/0": 0.5, "losses/1": 0.25})
    assert round_line([assessed]).endswith("2 numbers in plaintext: losses 0 0.5, losses 1 0.25")


def test_a_masked_update_is_named_as_such_with_and_without_noise() -> None:
    masked = replace(TRAINED, tensors={"masked/sum": (4,)})
    assert "81.6 kB masked model update, with the helpers' noise on its sum (ε 0.31; 6.9 of" in round_line([masked])
    assert "81.6 kB masked model update, without noise" in round_line([replace(masked, noised=False)])


def test_a_refusal_speaks_of_the_owner_s_limits_and_says_what_it_cost() -> None:
    refused = replace(TRAINED, refused="asked for ε 4 in one round, this client's limit is 3", epsilon_spent=0.0)
    assert refusal(refused) == (
        "run 20261122-fedrule refused: asked for ε 4 in one round, your limit is 3. Nothing left, nothing was spent"
    )
    assert refusal(replace(refused, epsilon_spent=0.2)).endswith("Nothing left, ε 0.2 was spent")


def test_a_server_cannot_write_control_characters_into_the_log() -> None:
    hostile = replace(TRAINED, run="x\x1b[2Jy\nz", refused="no\x1b]0;title\x07")
    assert not any(ord(character) < 32 for line in (refusal(hostile), round_line([hostile])) for character in line)


def test_a_line_follows_the_last_request_of_its_round() -> None:
    log = RoundLog()
    assert list(log.add(TRAINED)) == []
    assert len(list(log.add(MEASURED))) == 1
    assert list(log.add(TRAINED)) == []
    [line] = log.add(replace(TRAINED, round=13))
    assert "round 12/30" in line
    assert list(log.flush(after=60)) == []
    [line] = log.flush()
    assert "round 13/30" in line
    list(log.add(TRAINED))
    lines = list(log.add(replace(TRAINED, refused="paused by its owner", epsilon_spent=0.0)))
    assert ["trained" in line for line in lines] == [True, False]


def test_a_question_for_helpers_has_no_line() -> None:
    log = RoundLog()
    assert list(log.add(replace(TRAINED, asked="helper", round=0))) == []
    assert list(log.add(MEASURED)) == [round_line([MEASURED])]


def test_a_pause_of_many_rounds_is_one_line() -> None:
    log = RoundLog()
    enrolled = replace(TRAINED, asked="enrol", tensors={}, round=0)
    refused = replace(TRAINED, refused="paused by its owner", epsilon_spent=0.0)
    lines = [line for _ in range(5) for entry in (enrolled, refused) for line in log.add(entry)]
    assert ["takes part" in line for line in lines] == [True, False]
    list(log.add(TRAINED))
    assert len(list(log.add(refused))) == 2
