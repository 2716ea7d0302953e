"""Pictures of docs/explanation/architecture.md: rooms.svg and round.svg in docs/assets.

`python docs/make_architecture.py` reads rooms and imports from the tree. It fails if a room has no text here, if the layers
import each other in another way than drawn, or if a function in the picture of a round does not exist.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
ASSETS = Path(__file__).resolve().parent / "assets"

ROOMS = {
    "deploy": {
        "cli": "list of commands, options",
        "commands": "one file for each command",
        "federation": "start, watch, stop a run",
        "simulation": "a federation in one process",
        "superlink": "Flower's server process",
        "keys": "certificates, node keys",
        "data": "check, partition, budgets",
        "pages": "report, page, trackers",
        "serving": "export and serve a model",
        "tasks": "queries and report sections",
    },
    "server": {
        "round": "one round: price, ask, add, step",
        "methods": "server step of each method",
        "aggregation": "maths on replies and models",
        "secure": "sums that helpers open",
        "planning": "privacy cost of each round",
        "clients": "who takes part, names, keys",
        "exchange": "send and receive messages",
        "record": "files, events, result, verdict",
    },
    "client": {
        "training": "local rounds, stacked clients",
        "trainers": "local steps of each method",
        "privacy": "release, budget, ledger",
        "secure": "masked uploads, helpers",
        "data": "readers of private data",
        "tasks": "learners of each task",
        "node": "resident process",
        "hub": "many clients on one node",
        "owner": "policy, journal, control",
        "inference": "choice among stored models",
    },
    "common": {
        "config": "options of a run",
        "wire": "messages",
        "door": "frames, limits",
        "methods": "their options",
        "tasks": "names, models",
        "privacy": "noise, costs",
        "secure": "masks and noise",
        "logic": "temporal logic",
    },
}
"""Layer -> room -> text."""

IMPORTS = {"deploy": {"server", "client", "common"}, "server": {"common"}, "client": {"common"}, "common": set()}
"""Layer -> layers that it imports."""

COLORS = {"deploy": ("#f3eefb", "#6b4ba1"), "server": ("#e8f1fb", "#1f5f99"), "client": ("#eef6f2", "#1a6b54")}
"""Layer -> fill and stroke; `common` has greys."""
GREY = ("#f5f7fa", "#52606d")

ASK = [
    ("CostPlan.open", "server/round/plan.py", "cost and clip of the round"),
    ("Enrolment.gather", "server/clients/enrolment.py", "clients that are here"),
    ("cohort", "server/clients/roster.py", "draw the cohort"),
    ("Intake.open", "server/round/intake.py", "terms, if replies are summed"),
    ("Assignment.model_for", "server/round/method.py", "model of each client"),
    ("Method.broadcast", "server/round/method.py", "further arrays of the method"),
    ("PollingGrid.exchange", "server/exchange/grid.py", "send, and wait for a quorum"),
]
TAKE = [
    ("Intake.take", "server/round/intake.py", "check each reply as it arrives"),
    ("Intake.close", "server/round/intake.py", "bound on norms, or opened sums"),
    ("Intake.add_up", "server/round/intake.py", "one Contribution of all"),
    ("Method.update", "server/round/method.py", "next model and state"),
    ("all_finite", "common/arrays.py", "else again, without outliers"),
    ("RunState.next", "server/round/state.py", "checkpoint and journal follow"),
]
MEASURE = [
    ("Evaluator.requests", "server/round/evaluation.py", "models to evaluate"),
    ("Evaluator.summarize", "server/round/evaluation.py", "means, or a sum of metrics"),
    ("Round._retry", "server/round/round.py", "take a ruinous step back"),
    ("CostPlan.observe", "server/round/plan.py", "reward of a planner"),
]
LOCAL = [
    ("handle", "client/app.py", "decode the request"),
    ("Session.train", "client/session.py", "data, state and model"),
    ("Budget.reserve", "client/privacy/budget.py", "may this be released?"),
    ("train", "client/training/local_round.py", "local steps; Trainer hooks"),
    ("UpdateChain", "client/privacy/transforms.py", "select, privatize, encode"),
    ("Reservation.commit", "client/privacy/budget.py", "charge the ledger, add noise"),
]
EVALUATE = [
    ("Session.evaluate", "client/session.py", "held-out data of this client"),
]


def check_rooms() -> None:
    """Compare rooms and imports of layers with the tree.

    Raises:
        SystemExit: They differ from those above.
    """
    for layer, rooms in ROOMS.items():
        found = {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
        if found != rooms.keys():
            raise SystemExit(f"{layer}: rooms {sorted(found ^ rooms.keys())} differ; correct ROOMS in {__file__}")
        texts = [path.read_text("utf-8") for path in (ROOT / layer).rglob("*.py")]
        imported = {name for text in texts for name in _imports(text)} & ROOMS.keys() - {layer}
        if imported != IMPORTS[layer]:
            raise SystemExit(f"{layer} imports {sorted(imported)}; correct IMPORTS in {__file__}")


def _imports(text: str) -> Iterator[str]:
    """Yield the first part of each module that a file imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)


def check_functions() -> None:
    """Look for each function of the picture of a round.

    Raises:
        SystemExit: A file does not define it.
    """
    for name, path, _ in [*ASK, *TAKE, *MEASURE, *LOCAL, *EVALUATE]:
        body = ast.parse((ROOT / path).read_text("utf-8")).body
        for part in name.split("."):
            found = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part]
            if not found:
                raise SystemExit(f"{path} has no {name}; correct the picture of a round in {__file__}")
            body = found[0].body


def text(x: float, y: float, content: str, **style: str) -> str:
    """Return a text element; underscores in names of attributes stand for hyphens."""
    return f'<text x="{x}" y="{y}" {attributes(style)}>{escape(content)}</text>'


def box(x: float, y: float, width: float, height: float, **style: str) -> str:
    """Return a rectangle with round corners."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" {attributes(style)}/>'


def arrow(path: str, color: str, dashed: bool = False) -> str:
    """Return a line with a head at its end."""
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dashes} marker-end="url(#head)"/>'


def attributes(style: dict[str, str]) -> str:
    """Return attributes of an element."""
    return " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in style.items())


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return an SVG on a white card, which is readable on light and dark pages."""
    font = "Helvetica, Arial, 'Liberation Sans', sans-serif"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title" '
        f'font-family="{font}" font-size="12" fill="#1f2933">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#52606d"/></marker></defs>'
    )
    card = f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="14" fill="#ffffff" stroke="#cbd2d9"/>'
    return "\n  ".join([head, f'<title id="title">{escape(title)}</title>', marker, card, *parts]) + "\n</svg>\n"


def layer_box(layer: str, note: str, x: float, y: float, width: float, columns: int) -> list[str]:
    """Return a layer with a tile for each of its rooms."""
    fill, stroke = COLORS.get(layer, GREY)
    rooms, gap = ROOMS[layer], 8
    tile = (width - 24 - gap * (columns - 1)) / columns
    rows = -(-len(rooms) // columns)
    parts = [
        box(x, y, width, 40 + rows * 48, fill=fill, stroke=stroke, stroke_width="1.5"),
        text(x + 12, y + 23, layer, font_size="15", font_weight="bold", fill=stroke),
        text(x + width - 12, y + 23, note, text_anchor="end", fill="#3e4c59"),
    ]
    for number, (room, about) in enumerate(rooms.items()):
        left, top = round(x + 12 + number % columns * (tile + gap), 1), y + 34 + number // columns * 48
        parts += [
            box(left, top, round(tile, 1), 40, fill="#ffffff", stroke=stroke),
            text(left + 8, top + 17, room, font_weight="bold", font_size="13"),
            text(left + 8, top + 33, about, font_size="11", fill="#3e4c59"),
        ]
    return parts


def rooms_picture() -> str:
    """Return the picture of the rooms."""
    grey = GREY[1]
    parts = [
        *layer_box("deploy", "starts everything: the command fedloom", 20, 20, 840, 5),
        *layer_box("server", "aggregates; holds no data", 20, 196, 396, 2),
        *layer_box("client", "the owner's side", 464, 196, 396, 2),
        *layer_box("common", "what both sides agree on", 20, 516, 840, 8),
        *(arrow(f"M{x} 158V194", grey) for x in (218, 662)),
        *(arrow(f"M{x} {y}V514", grey) for x, y in ((218, 430), (662, 478))),
        arrow("M440 158V514", grey),
        arrow("M418 310H462", grey, dashed=True).replace("marker-end", 'marker-start="url(#head)" marker-end'),
        text(452, 186, "arrow: may import", font_size="11", fill="#3e4c59"),
        text(452, 500, "dashed: messages only", font_size="11", fill="#3e4c59"),
    ]
    return picture(880, 626, "Layers and rooms of fedloom, with the imports that are allowed between layers", parts)


def steps(items: list[tuple[str, str, str]], x: float, y: float, width: float, title: str, layer: str) -> list[str]:
    """Return a list of functions in the order in which a round enters them."""
    fill, stroke = COLORS[layer]
    parts = [
        box(x, y, width, 34 + 40 * len(items), fill=fill, stroke=stroke, stroke_width="1.5"),
        text(x + 12, y + 22, title, font_weight="bold", font_size="13", fill=stroke),
    ]
    for number, (name, path, about) in enumerate(items):
        top = y + 32 + 40 * number
        parts += [
            box(x + 10, top, width - 20, 34, fill="#ffffff", stroke=stroke),
            text(
                x + 18, top + 15, name, font_weight="bold", font_family="Menlo, Consolas, 'Liberation Mono', monospace"
            ),
            text(x + 18, top + 28, path, font_size="10.5", fill="#52606d"),
            text(x + width - 18, top + 15, about, text_anchor="end", fill="#3e4c59"),
        ]
    return parts


def round_picture() -> str:
    """Return the picture of one round."""
    parts = [
        text(20, 32, "Server: Round", font_size="15", font_weight="bold"),
        text(480, 32, "Each client: ClientApp", font_size="15", font_weight="bold"),
        *steps(ASK, 20, 46, 380, "1  Ask: configure_train", "server"),
        *steps(LOCAL, 480, 218, 380, "2  Train and release", "client"),
        *steps(TAKE, 20, 376, 380, "3  Add up and step: aggregate_train", "server"),
        *steps(MEASURE, 20, 666, 380, "4  Measure: configure_evaluate, aggregate_evaluate", "server"),
        *steps(EVALUATE, 480, 690, 380, "5  Evaluate", "client"),
        arrow("M402 335H440V266H478", GREY[1]),
        text(441, 258, "TrainRequest", font_size="10", text_anchor="middle", fill="#3e4c59"),
        arrow("M670 494V540H440V424H402", GREY[1]),
        text(556, 534, "TrainReply", font_size="11", text_anchor="middle", fill="#3e4c59"),
        arrow("M402 716H478", GREY[1]),
        arrow("M670 766V790H440V756H402", GREY[1]),
        text(441, 708, "EvaluateRequest", font_size="10", text_anchor="middle", fill="#3e4c59"),
        text(556, 784, "EvaluateReply", font_size="11", text_anchor="middle", fill="#3e4c59"),
        text(480, 600, "With noise, nothing leaves before the ledger is charged.", fill="#3e4c59"),
        text(480, 618, "Secure sums are another Intake, hubs another Exchange,", fill="#3e4c59"),
        text(480, 636, "planners another Plan. The steps stay.", fill="#3e4c59"),
    ]
    return picture(880, 880, "Functions that one round enters, at the server and at a client, in order", parts)


def main() -> None:
    """Check the pictures against the tree, and write them."""
    check_rooms()
    check_functions()
    (ASSETS / "rooms.svg").write_text(rooms_picture(), "utf-8")
    (ASSETS / "round.svg").write_text(round_picture(), "utf-8")


if __name__ == "__main__":
    main()
