"""Helm chart: linted, rendered, valid for Kubernetes, and with commands that exist."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click import Context, Group
from typer.main import get_command

from deploy.cli.app import app

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "fedloom"
HELM = Path(sys.executable).parent / "helm"
VALUES: dict[str, Any] = {
    "server": {
        "enabled": True,
        "name": "train.example.org",
        "options": ["--clients", "3"],
        "from": ["192.0.2.0/24"],
        "metrics": {"port": 9100, "from": [{"kubernetes.io/metadata.name": "monitoring"}]},
    },
    "helpers": [{"name": "works-council", "server": "train.example.org:9443", "secret": "fedloom-ca"}],
    "clients": [{"name": "shop-3", "invitation": "shop-3", "claim": "homes", "data": "homes.csv"}],
}


def helm(*words: str, values: object = None) -> str:
    text = json.dumps(values or {})
    done = subprocess.run(
        [HELM, *words, CHART, "--values", "-"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(done.stdout + done.stderr)
    return done.stdout


def rendered(values: object) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(helm("template", "x", values=values)) if one]


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "StatefulSet"]


def test_the_chart_is_of_this_version_and_clean() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHART.parents[2] / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]
    helm("lint", "--strict")
    helm("lint", "--strict", values=VALUES)
    assert rendered({}) == []


def test_every_object_is_valid_for_kubernetes_and_each_owner_installs_a_part() -> None:
    objects = rendered(VALUES)
    for one in objects:
        kubernetes_validate.validate(one, "1.30", strict=True)
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert sorted(names) == [
        ("NetworkPolicy", "x-server"),
        ("NetworkPolicy", "x-shop-3"),
        ("NetworkPolicy", "x-works-council"),
        ("Service", "x-server"),
        ("StatefulSet", "x-server"),
        ("StatefulSet", "x-shop-3"),
        ("StatefulSet", "x-works-council"),
    ]
    part = {key: value for key, value in VALUES.items() if key == "clients"}
    assert {one["metadata"]["name"] for one in rendered(part)} == {"x-shop-3"}


def test_pods_have_no_rights_and_limits_of_their_own() -> None:
    for pod in pods(rendered(VALUES)):
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for one in [*pod.get("initContainers", []), *pod["containers"]]:
            context = one["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert not context["allowPrivilegeEscalation"]
            assert "memory" in one["resources"]["limits"]


def test_network_policies_open_what_is_needed() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in rendered(VALUES) if one["kind"] == "NetworkPolicy"}
    assert policies["x-server"]["egress"] == []
    assert policies["x-server"]["ingress"][0]["from"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    for name, port in (("x-shop-3", 9092), ("x-works-council", 9443)):
        assert policies[name]["ingress"] == []
        assert [one["port"] for rule in policies[name]["egress"] for one in rule["ports"]] == [port, 53, 53]


def test_commands_of_pods_exist_with_their_options() -> None:
    group, seen = get_command(app), set()
    assert isinstance(group, Group)
    for pod in pods(rendered(VALUES)):
        for one in [*pod.get("initContainers", []), *pod["containers"]]:
            text = " ".join(one["command"])
            name = re.findall(r"fedloom (\w+)", text)[-1]
            if name != "keys":
                _, command, _ = group.resolve_command(Context(group), [name])
                assert command
                options = {option for parameter in command.params for option in parameter.opts}
                assert {word.partition("=")[0] for word in re.findall(r"--[a-z][a-z-]*", text)} <= options
            seen.add(name)
    assert seen == {"keys", "serve", "helper", "join"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"server": {"enabled": True}}, "server.name: the host name or address"),
        ({"clients": [{"name": "shop-3"}]}, "invitation is required"),
        ({"clients": [{**VALUES["clients"][0], "name": "Shop 3"}]}, "Does not match pattern"),
        ({"servr": {}}, "Additional property servr is not allowed"),
    ],
)
def test_wrong_values_are_refused(values: object, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        rendered(values)
