"""Live page in Chromium, served by `fedloom ui` as a process."""

import signal
import statistics
import time
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, expect

from deploy.superlink.superlink import free_port
from server.record.events import ClientRound, Finish
from server.record.folder import RunDirectory
from tests.support.ui import a_round, a_start, write_run
from tests.system.desk import Desk
from tests.system.ui_browser import open_page, rounds_shown, serve

pytestmark = [pytest.mark.system, pytest.mark.browser]

HOSTILE = "<img src=x onerror=document.title='owned'>"
UPDATES, LIMIT_SECONDS = 20, 1.0


def test_a_round_is_on_the_page_within_a_second(desk: Desk, live: RunDirectory, chromium: Browser) -> None:
    _, address = serve(desk)
    with open_page(chromium, address + "&run=live") as sight:
        expect(sight.page.locator("#state")).to_contain_text("Round 1 of 40")
        waits = []
        for number in range(1, UPDATES + 1):
            begin = time.monotonic()
            live.append(a_round(number, 40))
            sight.page.locator("#state", has_text=f"Round {number} of 40").wait_for()
            waits.append(time.monotonic() - begin)
        assert statistics.quantiles(waits, n=20)[-1] < LIMIT_SECONDS, waits
        assert sight.problems == []


def test_a_reload_in_the_middle_of_a_run_shows_every_round_once(
    desk: Desk, live: RunDirectory, chromium: Browser
) -> None:
    for number in range(1, 8):
        live.append(a_round(number, 40))
    _, address = serve(desk)
    with open_page(chromium, address + "&run=live") as sight:
        expect(sight.page.locator("#state")).to_contain_text("Round 7 of 40")
        sight.page.reload()
        live.append(a_round(8, 40))
        expect(sight.page.locator("#state")).to_contain_text("Round 8 of 40")
        assert rounds_shown(sight.page) == [str(n) for n in range(1, 9)]


def test_a_killed_and_restarted_server_continues_the_stream(desk: Desk, live: RunDirectory, chromium: Browser) -> None:
    port = free_port()
    live.append(a_round(1, 40))
    command, address = serve(desk, port)
    with open_page(chromium, address + "&run=live") as sight:
        expect(sight.page.locator("#state")).to_contain_text("Round 1 of 40")
        command.end(signal.SIGKILL)
        live.append(a_round(2, 40))
        expect(sight.page.locator("#link")).to_contain_text("connection lost")
        serve(desk, port)
        expect(sight.page.locator("#state")).to_contain_text("Round 2 of 40")
        expect(sight.page.locator("#link")).to_have_text("live")
        assert rounds_shown(sight.page) == ["1", "2"]


def test_an_open_stream_does_not_delay_the_end_of_the_server(desk: Desk, live: RunDirectory, chromium: Browser) -> None:
    command, address = serve(desk)
    with open_page(chromium, address + "&run=live") as sight:
        expect(sight.page.locator("#link")).to_have_text("live")
        begin = time.monotonic()
        command.end(signal.SIGTERM)
        assert time.monotonic() - begin < 5


def test_hostile_names_are_shown_as_text(desk: Desk, chromium: Browser) -> None:
    folder = write_run(desk.folder / "runs", "live", [a_start("live", method=HOSTILE, clients=[HOSTILE])])
    bad = a_round(1, metrics={HOSTILE: 0.5, "auc": 0.6}, clusters={HOSTILE: 1}, refused={HOSTILE: HOSTILE})
    state = ClientRound(state="refused", last_seen=1.0)
    folder.append(replace(bad, clients={HOSTILE: state, "__proto__": state, "constructor": state}))
    folder.append(Finish(status="failed", reason=HOSTILE))
    _, address = serve(desk)
    with open_page(chromium, address) as sight:
        expect(sight.page.locator("#state")).to_contain_text(HOSTILE)
        expect(sight.page.locator("#clients-table")).to_contain_text("__proto__")
        expect(sight.page.locator("#clients-table")).to_contain_text(HOSTILE)
        sight.page.locator("#runs-title").click()
        expect(sight.page.locator("#runs-table")).to_contain_text(HOSTILE[:20])
        assert sight.page.locator("img").count() == 0
        assert "owned" not in sight.page.title() or HOSTILE in sight.page.title()
        assert sight.problems == []
