"""Rules task at the command line."""

from collections.abc import Mapping
from pathlib import Path

from deploy.tasks.query import each_user, parse_share, serving_in
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return rules to add to a home."""
    from client.owner.policy import read_policy
    from client.tasks.rules.inference import recommend
    from client.tasks.rules.lists import ListOptions
    from client.training.comparison import describe_choice

    home = run.unit(query["user"], "user")
    allowed = read_policy(Path(query["policy"])).allow_harm if query.get("policy") else ()
    options = ListOptions(top, parse_share("diverse", query.get("diverse", "")), allowed=allowed)
    baseline = run.baseline(run.only_model)
    rules, empty = recommend(run.config, run.vocabulary, run.only_model, home, options, baseline)
    return Answers(
        home.name,
        "rule",
        {"rule to add": ("rule",), "likely": ("likely",), "why": ("why",)},
        [vars(rule) for rule in rules],
        describe_choice(baseline),
        empty=empty,
        what="rule",
        user=home.name,
    )


def to_yaml(answers: Answers, run: str) -> str:
    """Return recommended rules as automations of Home Assistant."""
    from client.tasks.rules.data.home_assistant.writer import ProposedRule, write_automations

    rules = [
        ProposedRule(
            trigger=str(row["trigger_device_id"]),
            trigger_type=str(row["trigger_device"]),
            state=str(row["trigger_state"]),
            action=str(row["action"]),
            device=str(row["action_device_id"]),
            sentence=str(row["rule"]),
            about=f"{row['likely']}; {row['why']}",
            undoing=(str(row["undoing_state"]), str(row["undoing_action"])),
            circumstances=str(row["circumstances"]),
        )
        for row in answers.rows
    ]
    return write_automations(rules, run)


TASK = DeployTask(
    name="rules",
    query=(
        QueryOption("user", "Recommend to this user of the data; default: the first."),
        QueryOption(
            "diverse",
            "Vary the devices: weight of the rank in [0, 1], such as 0.7; default: best rules first.",
            "WEIGHT",
        ),
        QueryOption("policy", "Show the harmful pairs that this owner's policy allows (allow-harm).", "FILE"),
    ),
    answer=answer,
    everybody=each_user,
    to_yaml=to_yaml,
    serving=serving_in("deploy.tasks.rules.model_service", "user"),
)
