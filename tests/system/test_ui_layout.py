"""Layout, controls and choice of runs on the live page, in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from server.record.events import Finish
from server.record.folder import RunDirectory
from tests.support.run_folders import make_run
from tests.support.ui import a_round, a_start, write_run
from tests.system.desk import Desk, until
from tests.system.ui_browser import open_page, rounds_shown, serve

pytestmark = [pytest.mark.system, pytest.mark.browser]

NAME = "(one) => `${one.tagName} ${one.id || one.textContent}`"
CONTROLS = f"""[...document.querySelectorAll('a, button, input, select, summary')]
  .filter((one) => one.offsetParent || one.matches('.skip')).map({NAME})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("full_desk")
def test_a_narrow_screen_needs_no_horizontal_scrolling(desk: Desk, chromium: Browser, scheme: str) -> None:
    _, address = serve(desk)
    with open_page(chromium, address + "&run=live&run=one&run=two", width=390, scheme=scheme) as sight:
        expect(sight.page.locator("#comparison-table tbody tr").first).to_be_visible()
        sight.page.locator("#runs-title").click()
        expect(sight.page.locator("#runs-table tbody tr").first).to_be_visible()
        for summary in sight.page.locator("main summary:visible").all():
            summary.click()
        assert sight.page.evaluate("document.documentElement.scrollWidth") == 390
        assert sight.problems == []


@pytest.mark.usefixtures("full_desk")
def test_every_control_is_reached_by_the_keyboard(desk: Desk, chromium: Browser) -> None:
    _, address = serve(desk)
    with open_page(chromium, address + "&run=live&run=two", reduced=True) as sight:
        page = sight.page
        expect(page.locator("#clients-table button").first).to_be_visible()
        page.locator("#runs-title").press("Enter")
        expect(page.locator("#runs-table input").first).to_be_visible()
        controls = page.evaluate(CONTROLS)
        page.evaluate("document.activeElement.blur()")
        reached, outlines = set(), set()
        for _ in range(3 * len(controls) + 40):
            page.keyboard.press("Tab")
            one = "document.activeElement"
            name, outline = page.evaluate(f"[({NAME})({one}), getComputedStyle({one}).outlineStyle]")
            reached.add(name)
            outlines |= {outline} if name in controls else set()
        assert set(controls) <= reached
        assert "none" not in outlines
        page.locator("#sort-state").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#sort-state")).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#sort-state")).to_be_focused()


@pytest.mark.usefixtures("full_desk")
def test_the_page_loads_nothing_from_elsewhere_and_little(desk: Desk, chromium: Browser) -> None:
    _, address = serve(desk)
    with open_page(chromium, "about:blank") as sight:
        weights: list[int] = []
        sight.page.on("response", lambda answer: weights.append(len(answer.body())) if static(answer.url) else None)
        sight.page.goto(address + "&run=one")
        expect(sight.page.locator("canvas").first).to_be_visible()
        assert sight.hosts <= {address.split("/")[2]}
        assert 50_000 < sum(weights) < 150_000
        assert sight.problems == []


def static(url: str) -> bool:
    """Return True for a file of the page itself."""
    return "/api/" not in url and "token=" not in url and url.startswith("http")


@pytest.mark.usefixtures("full_desk")
def test_runs_are_chosen_and_filtered_on_the_page(desk: Desk, chromium: Browser) -> None:
    _, address = serve(desk)
    with open_page(chromium, address + "&run=one") as sight:
        page = sight.page
        expect(page.locator("#title")).to_have_text("fedrule on rules")
        page.locator("#runs-title").click()
        page.locator("#pick-two").check()
        expect(page.locator("#title")).to_have_text("2 runs compared")
        expect(page).to_have_url(re.compile(r"run=one&run=two"))
        expect(page.locator("#comparison-note")).to_contain_text("No value is marked")
        expect(page.locator("#focus")).to_have_value("one")
        page.locator("#focus").select_option("two")
        expect(page.locator("#clusters h2")).to_be_visible()
        page.locator("#filter-task").select_option("traffic")
        expect(page.locator("#runs-table tbody tr")).to_have_count(1)
        page.locator("#pick-two").uncheck()
        expect(page.locator("#title")).to_have_text("fedrule on rules")


def test_only_comparable_runs_with_a_clear_difference_have_a_best_value(desk: Desk, chromium: Browser) -> None:
    for name, limit, fingerprint in (("a", 0.9, "same"), ("b", 0.985, "same"), ("c", 0.99, "other")):
        run = RunDirectory(desk.folder / "runs", make_run(desk.folder / "runs", name, clients=6, limit=limit).name)
        (run.path / "metrics.jsonl").unlink()
        for event in (a_start(name, fingerprint=fingerprint), a_round(9), Finish(status="completed")):
            run.append(event)
    _, address = serve(desk)
    with open_page(chromium, address + "&run=a&run=b&run=c") as sight:
        marked = sight.page.locator("#comparison-table tr:has-text('AUC') .best")
        expect(marked).to_have_count(1)
        assert float(marked.inner_text().removesuffix(" *")) == pytest.approx(0.985, abs=0.01)
        expect(sight.page.locator("#clients-note")).to_have_text("2 took part")


def test_a_shorter_file_starts_the_page_anew(desk: Desk, live: RunDirectory, chromium: Browser) -> None:
    for number in range(1, 5):
        live.append(a_round(number, 40))
    _, address = serve(desk)
    with open_page(chromium, address + "&run=live") as sight:
        expect(sight.page.locator("#state")).to_contain_text("Round 4 of 40")
        (live.path / "metrics.jsonl").unlink()
        until(lambda: "Waiting for the run" in sight.page.locator("#state").inner_text(), lambda: "no reset")
        live.append(a_start("live", 40))
        live.append(a_round(1, 40))
        expect(sight.page.locator("#state")).to_contain_text("Round 1 of 40")
        assert rounds_shown(sight.page) == ["1"]


def test_a_run_that_has_not_begun_is_awaited_without_error(desk: Desk, chromium: Browser) -> None:
    _, address = serve(desk)
    with open_page(chromium, address + "&run=later") as sight:
        expect(sight.page.locator("#state")).to_have_text("Waiting for the run to start")
        write_run(desk.folder / "runs", "later", [a_start("later"), a_round(1), Finish(status="completed")])
        expect(sight.page.locator("#state")).to_contain_text("Completed after 1 round")
        expect(sight.page.locator("#privacy")).to_contain_text("No noise is added.")
        assert sight.problems == []


def test_links_out_of_the_folder_of_runs_are_not_listed(desk: Desk, chromium: Browser, tmp_path: Path) -> None:
    outside = make_run(tmp_path / "elsewhere", "secret")
    (desk.folder / "runs").mkdir(exist_ok=True)
    (desk.folder / "runs" / "secret").symlink_to(outside)
    _, address = serve(desk)
    with open_page(chromium, address) as sight:
        expect(sight.page.locator("#runs-title")).to_have_text("Runs: 0 of 0 shown")
        expect(sight.page.locator("#title")).to_have_text("No run yet")
        assert sight.problems == []
