"""Ratings task at the command line."""

from collections.abc import Mapping

from deploy.tasks.query import HIDE, each_user, item_options, read_filter, serving_in, with_titles
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun


def answer(run: TrainedRun, query: Mapping[str, str], top: int) -> Answers:
    """Return products that a person has not rated."""
    from client.tasks.ratings.inference import suggestions
    from client.training.comparison import describe_choice

    rater = run.unit(query["user"], "user")
    chosen, notes = read_filter(query, run.vocabulary.items, HIDE)
    titles, baseline = run.read_titles(), run.baseline(run.only_model)
    found = suggestions(run.config, run.vocabulary, run.only_model, rater, top, chosen, titles, baseline)
    columns, rows = with_titles("product", found, titles)
    title = f"{rater.name}, whose mean rating is {found[0].own_mean:.2f}" if found else rater.name
    return Answers(
        title,
        "product",
        {"not rated yet" if chosen.hides_seen else "product": columns, "rating": ("rating",), "why": ("why",)},
        rows,
        (*notes, *describe_choice(baseline)),
        empty=chosen.reason_of_none(len(run.vocabulary.items), rater.items),
        what="product",
        score="rating",
        user=rater.name,
    )


TASK = DeployTask(
    name="ratings",
    query=(QueryOption("user", "Recommend to this user of the data; default: the first."), *item_options(HIDE)),
    answer=answer,
    everybody=each_user,
    serving=serving_in("deploy.tasks.ratings.model_service", "user"),
)
