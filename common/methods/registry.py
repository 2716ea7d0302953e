"""THE list of methods: a closed union, so that the type checker names every place a new one must be added."""

from typing import Literal, get_args

from common.methods.clustered import IFCA as IFCA
from common.methods.clustered import Clustered as Clustered
from common.methods.fedavg import FedAvg as FedAvg
from common.methods.fedga import FedGA as FedGA
from common.methods.fedopt import FedAdagrad as FedAdagrad
from common.methods.fedopt import FedAdam as FedAdam
from common.methods.fedopt import FedYogi as FedYogi
from common.methods.fedprox import FedProx as FedProx
from common.methods.fedrule import FedRule as FedRule
from common.methods.fedstl import FedSTL as FedSTL
from common.methods.perfedavg import PerFedAvg as PerFedAvg
from common.methods.personalized import Ditto as Ditto
from common.methods.personalized import FedRep as FedRep
from common.methods.personalized import Local as Local
from common.methods.pfedme import PFedMe as PFedMe
from common.methods.pfgnn import PFGNN as PFGNN
from common.methods.planners import ADAP as ADAP
from common.methods.planners import ADPML as ADPML
from common.methods.planners import BGTplanner as BGTplanner
from common.methods.planners import FedSGD as FedSGD
from common.methods.planners import Inner as Inner
from common.methods.planners import Uniform as Uniform
from common.options import Options

Algorithm = (
    FedAvg
    | FedProx
    | FedAdam
    | FedYogi
    | FedAdagrad
    | FedRule
    | FedGA
    | FedRep
    | Ditto
    | Local
    | IFCA
    | FedSTL
    | PFedMe
    | PerFedAvg
    | PFGNN
)

Planner = BGTplanner | Uniform | ADPML | ADAP | FedSGD
"""Methods that decide what a round spends, and leave the training to another one, their `inner`."""


class AlgorithmOptions(Options):
    """`[algorithm.<method>]`: each method's hyper-parameters; only the chosen method's may be set."""

    fedavg: FedAvg = FedAvg()
    fedprox: FedProx = FedProx()
    fedadam: FedAdam = FedAdam()
    fedyogi: FedYogi = FedYogi()
    fedadagrad: FedAdagrad = FedAdagrad()
    fedrule: FedRule = FedRule()
    fedga: FedGA = FedGA()
    fedrep: FedRep = FedRep()
    ditto: Ditto = Ditto()
    local: Local = Local()
    ifca: IFCA = IFCA()
    fedstl: FedSTL = FedSTL()
    pfedme: PFedMe = PFedMe()
    perfedavg: PerFedAvg = PerFedAvg()
    pfgnn: PFGNN = PFGNN()
    bgtplanner: BGTplanner = BGTplanner()
    uniform: Uniform = Uniform()
    adpml: ADPML = ADPML()
    adap: ADAP = ADAP()
    fedsgd: FedSGD = FedSGD()


Method = Literal[Inner, "bgtplanner", "uniform", "adpml", "adap", "fedsgd"]
METHODS: tuple[Method, ...] = get_args(Method)
PLANNERS: tuple[str, ...] = tuple(kind.model_fields["name"].default for kind in get_args(Planner))
"""Those of `METHODS` that go around another."""
