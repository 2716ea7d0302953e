"""Ratings task at the command line."""

from collections.abc import Mapping

from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return products that a person has not rated."""
    from client.tasks.ratings.inference import suggestions
    from deploy.tasks.units import find_unit

    rater = find_unit(run.read(""), query["user"], run.data, "user")
    found = suggestions(run.config, run.vocabulary, run.model, rater, top)
    title = f"{rater.name}, whose mean rating is {found[0].own_mean:.2f}" if found else rater.name
    columns = {"not rated yet": ("product",), "rating": ("rating",)}
    return Answers(title, "product", columns, [vars(one) for one in found])


TASK = DeployTask(
    name="ratings",
    query=(QueryOption("user", "Recommend to this user of the data; default: the first."),),
    answer=answer,
)
