"""The 21 claims of the five papers, and the rows that decide them."""

from dataclasses import replace

from studies.harness.contrast import Contrast, contrasts
from studies.harness.paper_claim import PaperClaim
from studies.harness.papers_on_markets import MARKETS
from studies.ratings.experiments import EARLY

_IFTTT = ("A/default", "B/default")
_SESSIONS = tuple(f"{name}/default" for name in ("gowalla", "yoochoose", "yoochoose64", "diginetica"))
_SENSORS = ("boroondara/origin-0", "ten/origin-0")
_SET = "IFTTT; not testable on Wyze, whose rules are not public"
_ERRORS = ("mse", "rho_point")

RULES = (
    PaperClaim(
        "FedRule",
        "R1",
        "FedRule beats FedGNN in loss, AUC and MR under one optimizer and rate, at equal rounds and at equal bytes",
        contrasts(
            "rules",
            _IFTTT,
            [("fedrule-adam", name) for name in ("fedgnn-adam", "fedgnn-steps", "fedgnn-rounds")],
            ("loss", "auc", "mr0"),
        ),
        f"{_SET}; control from gradients, which sends two vectors; equal bytes: FedGNN with twice the steps or rounds",
    ),
    PaperClaim(
        "FedRule",
        "R2",
        "FedGNN diverges after 50 to 150 iterations, FedRule converges",
        (
            Contrast("rules", "A/curves", "fedrule-sgd", "fedgnn-sgd", "rise"),
            Contrast("rules", "twins/drift", "fedrule-12", "fedgnn-12", "rise"),
        ),
        f"{_SET}, and generated homes; divergence: rise of the last test loss over the least of any round",
    ),
    PaperClaim(
        "FedRule",
        "R3",
        "FedRule is at least as good as GraphRule",
        tuple(
            replace(one, no_worse=True)
            for one in contrasts("rules", _IFTTT, [("fedrule-adam", "graphrule-adam")], ("loss", "auc", "mr0"))
        ),
        _SET,
    ),
    PaperClaim(
        "FedRule",
        "R4",
        "GraphRule beats MF and GCMC in hit rate",
        contrasts("rules", _IFTTT, [("graphrule-adam", "mf"), ("graphrule-adam", "gcmc")], ("hr20", "filtered_hr20")),
        f"{_SET}; MF and GCMC by our own implementations",
    ),
    PaperClaim(
        "FedRule",
        "R5",
        "With devices of one type, FedRule beats FedGNN",
        contrasts("rules", ("twins/drift",), [("fedrule-12", "fedgnn-12")], ("loss", "auc", "mr0")),
        "generated homes with two devices of a type, since IFTTT has none; metrics of all their rules; SGD, untuned",
    ),
)

_TUNED = ("gowalla/default", "yoochoose64/default")
_SIMILAR = ("yoochoose/default", "diginetica/default")
_LOCAL = ("fedavg", "fedavgm", "fedprox", "fedgate")
_SAME_RATE = [(f"dra-{rate}", f"adam-{rate}") for rate in (0.005, 0.01, 0.02, 0.04)]
_VARIED = ("fedga-0.003", "fedga-0.001", "fedga-steps-5", "fedga-steps-5-slow")

SESSIONS = (
    PaperClaim(
        "FedGA",
        "G1",
        "FedGA is far above FedAvg, and FedProx is no better than FedAvg",
        (
            *contrasts("sessions", _TUNED, [("fedga", name) for name in _LOCAL], ("hr20",)),
            *contrasts("sessions", _SIMILAR, [("fedga", "fedavgm")], ("hr20",)),
            *(Contrast("sessions", part, "fedavg", "fedprox", "hr20", no_worse=True) for part in _TUNED),
        ),
        "FedGA tuned over two to four points, others over six on Gowalla and Yoochoose 1/64; on the two other sets FedAvgM"
        " alone, their best on one seed, at the point of 1/64; FedProx with five local steps",
    ),
    PaperClaim(
        "FedGA",
        "G2",
        "FedGA is above FedYogi in HR@20",
        contrasts("sessions", _SESSIONS, [("fedga", "fedyogi")], ("hr20",)),
        "local rates not tuned",
    ),
    PaperClaim(
        "FedGA",
        "G3",
        "DRA makes FedAdam better in HR@20",
        (
            *contrasts("sessions", _SESSIONS[:1], [("fedadam-dra", "fedadam")], ("hr20",)),
            *contrasts("sessions", ("gowalla/denominators",), _SAME_RATE, ("hr20",)),
        ),
        "Gowalla alone; best server rate of each, and four rates of both: worse at the smallest, better at the third",
    ),
    PaperClaim(
        "FedGA",
        "G4",
        "FedGA is insensitive to K ≤ 50 and to η₀ in 0.001 to 0.01",
        tuple(Contrast("sessions", "gowalla/sensitivity", name, "fedga", "hr20", no_worse=True) for name in _VARIED),
        "against ηₛ = .01 and one local step; K read as local steps, up to 5, of the same rate or of a fifth of it",
    ),
    PaperClaim(
        "FedGA",
        "G5",
        "FedGA's effective rates are spread more narrowly",
        contrasts("sessions", ("gowalla/sensitivity",), [("fedga", "fedadam"), ("fedga", "fedyogi")], ("rate_spread",)),
        "ln of the ratio of the 95 % to the 5 % quantile over parameters, after the last round",
    ),
    PaperClaim(
        "FedGA",
        "G6",
        "FedAdam crashes in long training, FedGA does not",
        contrasts("sessions", ("gowalla/long",), [("fedga", "fedadam")], ("largest_fall",)),
        "Gowalla, 2,000 rounds of 20 clients; fall of HR@20 from its best so far; not testable on the paper's Retailrocket and"
        " LastFM-1K, which are not here",
    ),
)

TRAFFIC = (
    PaperClaim(
        "FedSTL",
        "S1",
        "FedSTL has a lower MSE and a higher ρ than personalised baselines",
        contrasts("traffic", _SENSORS, [("fedstl-rounds", name) for name in ("ifca", "fedrep", "ditto")], _ERRORS),
        "other sensors; equal rounds, at which FedSTL sends twice as much; Table 2 is not testable, since hourly FHWA data are"
        " not here",
    ),
    PaperClaim(
        "FedSTL",
        "S2",
        "After the teacher all forecasts satisfy their property, and MSE is no worse",
        tuple(Contrast("traffic", part, "fedstl", "fedstl", "teacher_mse", "mse", no_worse=True) for part in _SENSORS),
        "satisfaction after the teacher is 1 by construction",
    ),
    PaperClaim(
        "FedSTL",
        "S3",
        "Clusters by logic beat clusters by loss",
        contrasts("traffic", _SENSORS, [("fedstl-logic", "fedstl-loss")], _ERRORS),
        "other sensors; λ = 1 in both rows, no cluster steps",
    ),
    PaperClaim(
        "FedSTL",
        "S4",
        "Properties of eight templates are inferred and used",
        lacks="one seed of each template with the property in the loss and without; four more of all cost about 3 hours",
    ),
)

_REGRET = (
    "rewards are falls of RMSE, so cumulative regret is a difference of two RMSE: below 1 for any planner, over any number of"
    " rounds, and no run could refute the claim"
)

_BUDGETS = [f"{noise}-{epsilon}" for noise in ("gaussian", "laplace") for epsilon in (1, 10)]

RATINGS = (
    PaperClaim(
        "BGTplanner",
        "B1",
        "BGTplanner beats uniform, ADPML and ADAP at one budget",
        tuple(
            Contrast("ratings", "ml/paper", f"bgtplanner-{cell}", f"{name}-{cell}", "rmse")
            for name in ("uniform", "uniform18", "adpml", "adap", "random_arm")
            for cell in _BUDGETS
        ),
        "accounting corrected; uniform also over as many rounds as BGTplanner (18)",
    ),
    PaperClaim(
        "BGTplanner",
        "B2",
        "A smaller T_min helps",
        tuple(
            Contrast("ratings", "ml/paper", f"bgtplanner-t{share:g}-gaussian-1", "bgtplanner-gaussian-1", "rmse")
            for share in EARLY
        ),
        "20 rounds, ε = 1, Gaussian noise; shares .2, .4 and .6 of the rounds, against .8",
    ),
    PaperClaim("BGTplanner", "B3", "The regret is sublinear", not_testable=_REGRET),
)

CLAIMS = (*RULES, *SESSIONS, *TRAFFIC, *RATINGS, *MARKETS)
