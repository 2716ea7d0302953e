"""Export and local serving of the rules task."""

from dataclasses import replace

from pydantic import Field

from client.data.dataset import AnyDataset
from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.rules.inference import list_rules, network_inputs
from client.tasks.rules.lists import LEAST, ListOptions
from common.errors import ConfigError, DataError
from common.options import Scalar
from common.tasks.rules.vocabulary import RuleCatalogue, relation_name
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, RankingRequest, Request, ServedModel, Serving, places_of
from deploy.tasks.spec import TrainedRun

MAX_DEVICES, MAX_RULES = 200, 2000

UNKNOWN_TYPES = "device types"
REMEDY = "give the devices of the home"


class DeviceOfHome(Request):
    """Device of a home."""

    id: str = Field(min_length=1)
    """Name of the device, unique in the request."""
    type: str
    """Type of the device, as in the vocabulary."""


class RuleOfHome(Request):
    """Rule of a home: when `trigger` gets into `state`, do `action` with `device`."""

    trigger: str
    state: str
    action: str
    device: str


class RulesRequest(RankingRequest):
    """Home for which rules are recommended; without devices, the user's home in the server's data."""

    devices: list[DeviceOfHome] = Field([], max_length=MAX_DEVICES)
    rules: list[RuleOfHome] = Field([], max_length=MAX_RULES)
    user: str = Field("", max_length=MAX_NAME)
    exclude_seen: bool = True
    """True to leave out rules that the home has."""


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the rule recommender of a run.

    Raises:
        ConfigError: The run has a closed form.
    """
    from client.inference.model_choice import trained_network
    from client.tasks.rules.export import exportable

    if run.config.capabilities.closed_form:
        answers = f"fedloom recommend --run {run.name}"
        raise ConfigError(f"run '{run.name}' has sums in place of a network, which ONNX does not hold; use {answers}")
    network, statics = trained_network(run.config, run.vocabulary, run.model)
    return Export(exportable(network, run.vocabulary), run.config, run.vocabulary, statics)


def answer(model: ServedModel, request: RulesRequest) -> ModelAnswer:
    """Return rules to add to a home."""
    if request.rules and not request.devices:
        raise DataError("the request has rules, but no devices; give the devices of the home")
    home: Home = home_of(request, model.vocabulary) if request.devices else model.find(request.user, "user", REMEDY)
    logits = model.network(network_inputs(home, model.vocabulary))[0]
    shown = home if request.exclude_seen else replace(home, rules=as_edges([]))
    rules, empty = list_rules(logits, shown, model.vocabulary, ListOptions(request.top, least=LEAST))
    rows: list[dict[str, Scalar | None]] = [{"what": rule.rule, "score": rule.score, "why": rule.why} for rule in rules]
    return ModelAnswer(rows, (empty,) if empty else ())


def home_of(request: RulesRequest, catalogue: RuleCatalogue) -> Home:
    """Return the home of a request, its devices ordered as a reader orders them.

    Raises:
        DataError: A type, relation or device is unknown, or two devices have the same id.
    """
    types = places_of([device.type for device in request.devices], catalogue.entities, UNKNOWN_TYPES)
    named = sorted(zip((device.id for device in request.devices), types, strict=True))
    devices = tuple(Device(name, entity) for name, entity in named)
    ids = [device.name for device in devices]
    if len(set(ids)) < len(ids):
        raise DataError("two devices have the same id; give each device an id of its own")
    triggers = places_of([rule.trigger for rule in request.rules], ids, "devices of rules")
    actions = places_of([rule.device for rule in request.rules], ids, "devices of rules")
    try:
        names = [relation_name(rule.state, rule.action) for rule in request.rules]
    except ValueError as error:
        raise DataError(str(error)) from None
    relations = places_of(names, catalogue.relations, "relations")
    return Home("", devices, as_edges(zip(triggers, actions, relations, strict=True)))


SERVING = Serving(
    route="recommend",
    request=RulesRequest,
    export=export,
    answer=answer,
    limits="Not for locks, alarms or heating without a person who checks each rule before it is switched on.",
)
