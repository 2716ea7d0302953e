"""Public surface for plug-ins: what server and clients agree on. Importing it imports no torch."""

from common.arrays import Array, Arrays, Floats, add, mean, norm, scale, sub, zeros_like
from common.errors import ConfigError, DataError, FedloomError, RefusedError, WireError
from common.methods.base import MethodOptions, MethodSpec
from common.methods.planners import ArmOptions, PlannerOptions, PlannerSpec
from common.metrics import HIT_RATE, LOSS, MODEL_FAMILIES, MRR, NDCG, MetricFamily, MetricSpec
from common.options import Options, Scalar
from common.privacy.options import PrivacyOptions
from common.tasks.networks import NetworkSpec
from common.tasks.options import Capabilities, NamedRows, TaskOptions
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec
from common.tasks.vocabulary import Vocabulary, check_names
from common.wire.messages import Metrics, TrainReply, TrainRequest

__all__ = [
    "HIT_RATE",
    "LOSS",
    "MODEL_FAMILIES",
    "MRR",
    "NDCG",
    "ArmOptions",
    "Array",
    "Arrays",
    "Capabilities",
    "Comparison",
    "ConfigError",
    "DataError",
    "FedloomError",
    "Floats",
    "MethodOptions",
    "MethodSpec",
    "MetricFamily",
    "MetricSpec",
    "Metrics",
    "NamedRows",
    "NetworkSpec",
    "Objective",
    "Options",
    "PlannerOptions",
    "PlannerSpec",
    "PrivacyOptions",
    "RefusedError",
    "Scalar",
    "TaskOptions",
    "TaskRun",
    "TaskSpec",
    "TrainReply",
    "TrainRequest",
    "Vocabulary",
    "WireError",
    "add",
    "check_names",
    "mean",
    "norm",
    "scale",
    "sub",
    "zeros_like",
]
