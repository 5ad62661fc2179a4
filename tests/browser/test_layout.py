"""Nothing moves, everything can be hit, and everybody can read it."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.judging import until
from tests.factories import make_user

pytestmark = pytest.mark.browser

SIZES = [(360, 740), (820, 1180), (1280, 800)]
SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shifts.push(
            [entry.value, ...entry.sources.map((s) => s.node?.nodeName + "." + s.node?.className)]);
    }).observe({ type: "layout-shift", buffered: true });
}"""
SMALL = """() => [...document.querySelectorAll("button, a[href], summary, input, select")]
    .filter((node) => node.checkVisibility() && !node.closest(".sr-only, .skip-link, dialog:not([open])"))
    .map((node) => {
        const target = node.closest("label") || node;
        const box = target.getBoundingClientRect();
        return [node.outerHTML.slice(0, 90), Math.round(box.width), Math.round(box.height)];
    })
    .filter(([, width, height]) => width < 44 || height < 44)"""


def serious(page, rules: list[str] | None = None) -> list[str]:
    """Serious and critical findings of axe (or of some of its rules), with the place."""
    # A colour that is still on its way to another has a contrast of its own.
    page.evaluate(
        """() => Promise.all(document.getAnimations()
            .filter((one) => one.playState === 'running' && one.effect.getComputedTiming().endTime < Infinity)
            .map((one) => one.finished.catch(() => {})))"""
    )
    options = {"runOnly": rules} if rules else {}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found
        if rule["impact"] in {"serious", "critical"}
        for node in rule["nodes"]
    ]


@pytest.mark.field_case(17)
@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("mode", ["focus", "grid"])
def test_nothing_moves_while_judging(judging, page, width, height, mode):
    page.set_viewport_size({"width": width, "height": height})
    page.add_init_script(f"({SHIFTS})()")
    texts = [
        "a red ball",
        "a small brown dog to the left of a very large wooden chair in a sunlit room with tall "
        "windows, a striped rug, three lamps and many old books on the shelves",
        "two cats and one dog on a green sofa",
        "a lamp",
    ]
    judge = judging(
        images=4 if mode == "focus" else 12,
        per_text=1 if mode == "focus" else 3,
        texts=texts,
        mode=mode,
        grid_size=3,
    )
    buttons = page.locator(".judge-actions [data-act=undo]")
    before = buttons.bounding_box()
    for _ in range(3):
        if mode == "focus":
            judge.judge("j")
        else:
            text = judge.text
            judge.press("j", "f", "j", "Enter")
            judge.wait_for_other_text(text)
    judge.press("z")
    judge.wait_for_state("saved", 0)
    assert buttons.bounding_box() == before
    assert page.evaluate("() => window.shifts") == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


@pytest.mark.field_case(17)
@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("mode", ["focus", "grid"])
def test_targets_are_large_enough(judging, page, width, height, mode):
    page.set_viewport_size({"width": width, "height": height})
    judging(images=3, per_text=3, mode=mode, grid_size=3)
    assert page.evaluate(SMALL) == []


def test_reduced_motion_stops_transitions(judging, page):
    page.emulate_media(reduced_motion="reduce")
    judging()
    longest = page.locator(".judge-tint").evaluate("(n) => getComputedStyle(n).transitionDuration")
    assert float(longest.removesuffix("s")) < 0.001


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("mode", ["focus", "grid"])
def test_axe_finds_nothing_serious_on_the_judging_page(judging, page, mode, scheme):
    page.emulate_media(color_scheme=scheme)
    judge = judging(images=6, per_text=3, mode=mode, grid_size=3)
    assert serious(page) == []
    for dialog, key in [("guide", "g"), ("keys", "k"), ("skip", "s"), ("flag", "r")]:
        # Keys are dead until the dialog before is closed for good and the picture is there.
        judge.wait_for_item()
        opened = page.locator(f"#{dialog}-dialog[open]")
        until(page, lambda opened=opened, key=key: judge.press(key) and opened.count())
        assert serious(page) == []
        judge.press("Escape")
        page.wait_for_selector(f"#{dialog}-dialog:not([open])", state="attached")
    if mode == "grid":
        before = judge.text
        judge.press("j", "j", "j", "Enter")
        judge.wait_for_other_text(before)
    else:
        for _ in range(3):
            judge.judge("j")
        judge.wait_for_item()
    shown = judge.image
    judge.press("z")
    until(page, lambda: judge.image != shown)
    assert serious(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_account_pages(live_server, page, world, sign_in, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{live_server.url}/accounts/login/")
    assert serious(page) == []
    page.fill("#id_username", "nobody")
    page.fill("#id_password", "nothing")
    page.press("#id_password", "Enter")
    page.wait_for_selector("[role=alert]")
    assert serious(page) == []
    sign_in(world.annotator())
    for path in ["/accounts/profile/", "/accounts/password/", "/no-such-page/"]:
        page.goto(live_server.url + path)
        assert serious(page) == []
    page.goto("about:blank")


@pytest.mark.parametrize("width", [360, 820, 1280])
def test_account_pages_fit_the_screen_and_the_finger(live_server, page, world, sign_in, width):
    page.set_viewport_size({"width": width, "height": 740})
    page.goto(f"{live_server.url}/accounts/login/")
    fits = "() => document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    sign_in(world.annotator(role="admin"))
    page.goto(f"{live_server.url}/accounts/profile/")
    assert page.evaluate(fits)
    page.goto("about:blank")


def test_a_chosen_theme_stays_without_a_flash(live_server, page, world, sign_in):
    sign_in(world.annotator())
    page.goto(f"{live_server.url}/accounts/profile/")
    page.click("summary[aria-label='Theme and language']")
    page.click("[data-theme-choice=dark]")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    # Before the first paint: a script that runs at the end of <head> already sees the theme.
    page.add_init_script(
        "document.addEventListener('DOMContentLoaded', () => {"
        " window.early = document.documentElement.dataset.theme; })"
    )
    page.reload()
    assert page.evaluate("() => window.early") == "dark"
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
    page.goto("about:blank")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_bar_has_room_for_an_admins_rooms(page, live_server, sign_in, language):
    user = make_user("admin", display_name="Wilhelmine Friedrichsen")
    sign_in(user)
    page.set_extra_http_headers({"Accept-Language": language})
    page.goto(live_server.url + "/accounts/profile/")
    assert page.get_attribute("html", "lang") == language
    for width in (1232, 1280, 1401, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        links = page.locator(".nav-wide a").all()
        assert len(links) == 9
        boxes = [link.bounding_box() for link in links]
        tools = page.locator(".nav-tools").bounding_box()
        assert max(box["x"] + box["width"] for box in boxes) <= tools["x"], width
        assert page.locator(".brand svg").bounding_box()["width"] == 26
        assert tools["x"] + tools["width"] <= width
