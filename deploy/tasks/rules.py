"""Rules task at the command line."""

from collections.abc import Mapping

from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return rules to add to a home."""
    from client.tasks.rules.inference import recommend
    from deploy.tasks.units import find_unit

    home = find_unit(run.read(""), query["user"], run.data, "user")
    rules = recommend(run.config, run.vocabulary, run.model, home, top)
    columns = {"rule to add": ("rule",), "probability": ("probability",)}
    return Answers(home.name, "rule", columns, [vars(rule) for rule in rules])


TASK = DeployTask(
    name="rules",
    query=(QueryOption("user", "Recommend to this user of the data; default: the first."),),
    answer=answer,
)
