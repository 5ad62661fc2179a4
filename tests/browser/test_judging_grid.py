"""Grid mode: the pictures of one text together, each with its own judgement and its own time."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def grid(judging):
    def start(**settings):
        settings = {"images": 12, "per_text": 6, "mode": "grid", "grid_size": 6, **settings}
        return judging(**settings)

    return start


def tiles(judge):
    return judge.page.locator(".tile")


def source(judge, index: int) -> str:
    return tiles(judge).nth(index).locator("img").get_attribute("src")


def test_pictures_of_one_text_are_judged_by_keyboard(grid):
    judge = grid()
    assert tiles(judge).count() == 6
    sources = [source(judge, i) for i in range(6)]
    text = judge.text
    judge.press("j", "f", "Space", "j")
    judge.press("ArrowRight", "f")  # the sixth before the fifth
    judge.press("j")  # then back to the one that is open
    assert "All judged" in judge.page.locator(".judge-earlier").inner_text()
    judge.press("Enter")
    judge.wait_for_other_text(text)
    judge.wait_for_state("saved", 0)
    verdicts = judge.by_image()
    given = ["accept", "reject", "unsure", "accept", "accept", "reject"]
    assert [verdicts[image] for image in sources] == given


def test_each_picture_has_its_own_time_and_the_mode_is_stored(grid):
    judge = grid(visit=False)
    judge.page.clock.install()
    begun = time.monotonic()
    judge.open()
    for seconds in (1, 2, 3):
        judge.page.clock.run_for(seconds * 1000)
        judge.press("j")
    passed = (time.monotonic() - begun) * 1000  # the page's clock goes on by itself, too
    judge.page.clock.run_for(1_000)
    rows = judge.wait_for_judgements(3)
    assert {row.mode for row in rows} == {"grid"}
    times = sorted(row.active_ms for row in rows)
    assert times[1] >= 1_900
    assert times[2] >= 2_900
    assert sum(times) <= 6_010 + passed  # each second is one picture's only


def test_pictures_are_judged_by_touch(browser, live_server, world, sign_in, problems):
    from tests.browser.judging import JudgingPage

    phone = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    person = sign_in(world.annotator(), phone)
    campaign = world.open_campaign(images=6, per_text=6, mode="grid", grid_size=6)
    page = phone.new_page()
    judge = JudgingPage(page, live_server.url, campaign, person, problems).open()
    sources = [source(judge, i) for i in range(6)]
    for i in range(6):
        tiles(judge).nth(i).locator("[data-act=reject]" if i % 2 else "[data-act=accept]").tap()
    tiles(judge).nth(5).locator("[data-act=accept]").tap()  # a mind changed
    # A tap becomes a click a little later: wait for what it shows, then for the server.
    page.wait_for_selector(".tile:nth-child(6) [data-act=accept][aria-pressed=true]")
    judge.wait_for_state("saved", 0)
    verdicts = judge.by_image()
    given = ["accept", "reject", "accept", "reject", "accept", "accept"]
    assert [verdicts[image] for image in sources] == given
    page.locator("[data-act=next]").tap()
    page.wait_for_selector("#judge[data-end=finished]")
    page.goto("about:blank")
    page.wait_for_timeout(300)
    phone.close()


def test_a_text_with_many_pictures_comes_in_screens_of_the_campaigns_size(grid):
    judge = grid(images=26, per_text=26, grid_size=6)
    text, seen, sizes = judge.text, [], []
    while sum(sizes) < 26:
        judge.wait_for_item()
        sizes.append(tiles(judge).count())
        seen += [source(judge, i) for i in range(sizes[-1])]
        judge.press(*"j" * sizes[-1])
        assert judge.text == text
        judge.press("Enter")
        judge.page.wait_for_function(
            "(src) => !document.querySelector('.tile img')"
            " || document.querySelector('.tile img').getAttribute('src') !== src",
            arg=seen[-sizes[-1]],
        )
    judge.page.wait_for_selector("#judge[data-end=finished]")
    judge.wait_for_state("saved", 0)
    assert len(set(seen)) == len(judge.judgements()) == 26
    assert max(sizes) <= 6


@pytest.mark.field_case(11)
def test_the_same_verdict_twice_is_one_answer(grid):
    judge = grid()
    button = tiles(judge).first.locator("[data-act=accept]")
    button.click()
    button.click()
    judge.wait_for_judgements(1)
    judge.wait_for_state("saved", 0)
    assert button.get_attribute("aria-pressed") == "true"
    assert [row.verdict for row in judge.judgements()] == ["accept"]


def test_undo_goes_back_to_the_picture_judged_last(grid):
    judge = grid()
    first = source(judge, 0)
    judge.press("j", "z", "f")
    judge.wait_for_verdicts({first: "reject"})


@pytest.mark.field_case(18)
@pytest.mark.parametrize("way", ["key", "browser"])
def test_undo_reaches_back_into_the_text_before(grid, way):
    judge = grid()
    page = judge.page
    first = judge.text
    sources = [source(judge, i) for i in range(6)]
    judge.press("j", "j", "j", "j", "j", "f", "Enter")
    second = judge.wait_for_other_text(first)
    if way == "key":
        judge.press("z")
    else:
        page.go_back()
    page.wait_for_function(
        "(text) => document.querySelector('[data-text]').innerText === `“${text}”`", arg=first
    )
    assert tiles(judge).nth(5).get_attribute("aria-current") == "true"
    assert tiles(judge).nth(5).get_attribute("data-verdict") == "reject"
    judge.press("j")
    judge.press("z", "z", "f")  # and the one before the last
    judge.press("Enter")
    page.wait_for_function(
        "(text) => document.querySelector('[data-text]').innerText === `“${text}”`", arg=second
    )
    judge.press("j", "j", "j", "j", "j", "j", "Enter")
    page.wait_for_selector("#judge[data-end=finished]")
    judge.wait_for_state("saved", 0)
    verdicts = judge.by_image()
    assert len(verdicts) == 12
    assert verdicts[sources[5]] == "accept"
    assert [verdicts[image] for image in sources[:4]] == ["accept"] * 4
    assert verdicts[sources[4]] == "reject"


@pytest.mark.parametrize(
    ("size", "columns"), [((1280, 800), 3), ((1920, 1080), 3), ((820, 1180), 3), ((360, 740), 2)]
)
def test_all_pictures_of_a_text_are_seen_at_once_where_they_stay_large(grid, page, size, columns):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    judge = grid()
    stage = page.locator(".judge-stage")
    assert stage.evaluate("(n) => getComputedStyle(n).gridTemplateColumns.split(' ').length") == (
        columns
    )
    hidden = stage.evaluate("(n) => n.scrollHeight - n.clientHeight")
    width = tiles(judge).first.bounding_box()["width"]
    assert hidden == 0 or size[0] == 360
    assert width >= (150 if size[0] == 360 else 180)


def test_a_picture_is_enlarged_by_key(grid):
    judge = grid()
    judge.press("+")
    judge.page.wait_for_selector("#large-dialog[open]")
    judge.press("Escape")
    judge.page.wait_for_selector("#large-dialog:not([open])", state="attached")
    judge.press("j")
    judge.wait_for_judgements(1)


def test_one_picture_is_skipped_and_the_rest_goes_on(grid):
    judge = grid(images=6)
    judge.press("s")
    judge.page.wait_for_selector("#skip-dialog[open]")
    judge.press("1", "Enter")
    judge.page.wait_for_selector("#skip-dialog:not([open])", state="attached")
    judge.press("j", "j", "j", "j", "j")
    assert "All judged" in judge.page.locator(".judge-earlier").inner_text()
    judge.wait_for_judgements(5)
    judge.wait_for_state("saved", 0)
    assert judge.leases().filter(state="skipped").count() == 1


@pytest.mark.field_case(11)
def test_the_last_of_many_quick_corrections_stands(grid):
    """Also when the server's clock, known to the second only, seems to jump between them."""
    judge = grid()
    first = source(judge, 0)
    judge.page.evaluate(
        """async () => {
            const { page } = await import("/static/js/judge/main.js");
            const tile = document.querySelector(".tile");
            for (let i = 0; i < 9; i += 1) {
                page.api.skew = i % 2 ? 400 : -400;
                tile.querySelector(`[data-act=${i % 2 ? "reject" : "accept"}]`).click();
            }
        }"""
    )
    judge.wait_for_state("saved", 0)
    assert judge.by_image() == {first: "accept"}
    assert (
        judge.page.evaluate(
            """async () => (await import("/static/js/judge/main.js")).page.outbox.refused.length"""
        )
        == 0
    )
