"""`fedloom helper`: processes at a real SuperLink, over TLS and with registered keys."""

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from common.node_names import fingerprint
from deploy.federation.processes import Processes
from deploy.keys.certificates import make_authority, make_server_certificate
from deploy.keys.nodes import load_public_key, make_node_key, public_path
from deploy.superlink.control import Control
from deploy.superlink.superlink import SuperLinkSettings, start_superlink
from tests.system.desk import ROOT, Command, Desk, until

pytestmark = pytest.mark.system

APP = ROOT / "tests" / "support" / "sum_app"
MEGABYTE = 1_000_000


@dataclass
class Helpers:
    """SuperLink with a control, and helpers that are not started yet."""

    desk: Desk
    settings: SuperLinkSettings
    control: Control

    def start(self, number: int) -> Command:
        """Start a helper, with the node key of an earlier start if there was one."""
        key, folder = self.desk.folder / f"{number}.key", self.desk.folder
        place = ("--server", self.settings.address, "--ca", folder / "server" / "ca.pem", "--key", key)
        return self.desk.start("helper", *place, "--name", f"helper-{number}")


@pytest.fixture
def helpers(desk: Desk) -> Iterator[Helpers]:
    folder = desk.folder / "server"
    make_authority(folder)
    certificates = make_server_certificate(folder)
    path = {"PYTHONPATH": str(ROOT)}
    ports = {"port": desk.port, "control_port": desk.control_port}
    settings = SuperLinkSettings(folder, certificates, authenticate=True, environment=path, **ports)
    with Processes() as processes:
        start_superlink(processes, settings)
        control = Control(settings.control_address, certificates.ca)
        for number in range(2):
            make_node_key(desk.folder / f"{number}.key")
            control.register(public_path(desk.folder / f"{number}.key"))
        yield Helpers(desk, settings, control)


def test_two_helpers_open_sums_and_one_that_was_killed_opens_those_of_its_new_key(helpers: Helpers) -> None:
    folder = helpers.desk.folder
    first, second = helpers.start(0), helpers.start(1)
    run = helpers.control.submit(APP, {"folder": str(folder)})
    until(lambda: (folder / "opened").exists(), helpers.settings.log.read_text)
    process = psutil.Process(first.process.pid)
    assert process.memory_info().rss < 120 * MEGABYTE
    assert not [one.path for one in process.memory_maps() if "libtorch" in one.path]
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    third = helpers.start(0)
    third.wait_for("connected to")
    (folder / "again").touch()
    until(lambda: helpers.control.status(run).startswith("finished"), helpers.settings.log.read_text)

    result = json.loads((folder / "result.json").read_text())
    keys = {f"helper-{n}": fingerprint(load_public_key(public_path(folder / f"{n}.key"))) for n in range(2)}
    assert result["helpers"] == keys
    assert (result["bad"], result["exact"]) == ([[], []], True)
    gone = "round 1 of run 'toy' is of a key that this helper does not have: it started again, or the run is over"
    assert result["refusals"] == [gone, "the sum of round 1 was opened for another set"]
    assert 1.2 < result["deviation"] < 1.65  # the noise of both, standard deviation 2 ** .5
    for helper in (third, second):
        assert helper.end(signal.SIGTERM) == 0
    line = re.compile(
        r"^\d\d:\d\d:\d\d toy · round 1 · (train|evaluate) · (3|4) clients · noise (0|4096)$", re.MULTILINE
    )
    assert (len(line.findall(second.error())), len(line.findall(third.error()))) == (2, 1)
