"""Focus mode: one text, one picture, one key."""

from __future__ import annotations

import time

import pytest

from croc_annotate.annotation.models import Flag, Judgement
from tests.browser.judging import JudgingPage, until

pytestmark = pytest.mark.browser
KEYS = {"accept": "j", "reject": "f", "unsure": "Space"}


def test_ten_items_are_judged_by_keyboard_alone(live_server, page, world, problems):
    campaign = world.open_campaign(images=10)
    person = world.annotator(username="ada")
    page.goto(f"{live_server.url}/annotate/{campaign.slug}/")
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type("a good passphrase")
    page.keyboard.press("Enter")
    judge = JudgingPage(page, live_server.url, campaign, person, problems).wait_for_item()
    given = {}
    for i in range(10):
        verdict = ("accept", "reject", "unsure")[i % 3]
        given[judge.judge(KEYS[verdict])] = verdict
    page.wait_for_selector("[data-end=finished]")
    judge.wait_for_judgements(10)
    assert judge.by_image() == given
    assert all(0 < row.active_ms < 60_000 and row.mode == "focus" for row in judge.judgements())
    assert problems == []


@pytest.mark.field_case(14)
def test_two_pictures_ahead_are_loaded_and_decoded_and_given_back_unseen(judging):
    judge = judging()
    judge.wait_for_ahead(2)
    assert all(entry["decoded"] for entry in judge.ahead()[:2])
    held = {row.item.key for row in judge.leases().filter(state="leased").select_related("item")}
    judge.page.goto("about:blank")
    assert len(held) >= 3
    kept = judge.leases().filter(state="leased")
    until(judge.page, lambda: kept.count() <= 1)
    assert kept.count() == 1  # the one that was on the screen


@pytest.mark.field_case(15)
def test_text_and_picture_change_in_the_same_frame(judging):
    judge = judging(images=8)
    judge.page.evaluate(
        """() => {
            window.pairs = new Set();
            const look = () => {
                const image = document.querySelector(".judge-stage img");
                const text = document.querySelector("[data-text]").textContent;
                if (image || text) window.pairs.add(`${text}|${image?.getAttribute("src") ?? ""}|${image?.complete}`);
                requestAnimationFrame(look);
            };
            look();
        }"""
    )
    for _ in range(6):
        judge.judge("j")
        # No person answers within a frame; what none shows cannot be seen to be right.
        judge.page.evaluate(
            "() => new Promise((ends) => requestAnimationFrame(() => requestAnimationFrame(ends)))"
        )
    judge.wait_for_judgements(6)
    seen = [pair.split("|") for pair in judge.page.evaluate("[...window.pairs]")]
    from django.urls import reverse

    from croc_annotate.annotation.models import Item

    right = {
        reverse("candidates:display", args=[item.candidate.key]): item.text
        for item in Item.objects.filter(campaign=judge.campaign).select_related("candidate__pair")
    }
    assert len(seen) >= 7
    assert all(
        right[source] == text.strip("“”") and whole == "true" for text, source, whole in seen
    )


@pytest.mark.field_case(15)
def test_keys_are_dead_until_the_picture_is_decoded(judging, page):
    judge = judging(images=6, visit=False)
    gate, is_open = [], []
    page.route("**/i/*", lambda route: route.continue_() if is_open else gate.append(route))
    page.goto(judge.url)
    page.wait_for_function("() => document.querySelector('#judge').dataset.started === 'yes'")
    judge.press("j", "f", "Space", "j")
    until(page, lambda: gate)
    page.wait_for_timeout(300)  # nothing may come of the keys
    assert page.locator("[data-text]").inner_text() == ""
    assert judge.judgements() == []
    is_open.append(True)
    for route in gate:
        route.continue_()
    judge.wait_for_item()
    assert judge.judgements() == []


@pytest.mark.field_case(16)
def test_keys_are_dead_on_repeat_in_dialogs_fields_and_input_methods(judging):
    judge = judging()
    shown = judge.image
    judge.page.evaluate(
        """() => {
            const fire = (extra) => document.body.dispatchEvent(new KeyboardEvent("keydown",
                { key: "j", bubbles: true, cancelable: true, ...extra }));
            fire({ repeat: true }); fire({ isComposing: true }); fire({ keyCode: 229 });
            fire({ ctrlKey: true }); fire({ metaKey: true }); fire({ altKey: true });
        }"""
    )
    judge.press("s")
    judge.page.wait_for_selector("#skip-dialog[open]")
    judge.press("j", "f")
    judge.page.fill("#skip-remark", "")
    judge.page.focus("#skip-remark")
    judge.page.keyboard.type("j f 1 z")
    judge.press("Escape")
    judge.page.wait_for_selector("#skip-dialog:not([open])", state="attached")
    assert judge.image == shown
    judge.page.wait_for_timeout(200)
    assert Judgement.objects.count() == 0
    judge.judge("j")
    judge.wait_for_judgements(1)


@pytest.mark.field_case(16)
def test_a_held_key_answers_once(judging):
    judge = judging()
    judge.page.keyboard.down("j")
    for _ in range(5):
        judge.page.keyboard.down("j")  # Playwright sends repeats while a key is held
    judge.page.keyboard.up("j")
    judge.page.wait_for_timeout(400)
    assert len(judge.wait_for_judgements(1)) == 1


@pytest.mark.field_case(16)
def test_space_after_a_click_does_not_press_the_button_again(judging):
    judge = judging()
    judge.page.click("[data-act=accept]")
    judge.wait_for_judgements(1)
    judge.wait_for_item()
    judge.judge("Space")
    verdicts = [row.verdict for row in judge.wait_for_judgements(2)]
    assert verdicts == ["accept", "unsure"]


@pytest.mark.field_case(11)
def test_undo_and_change_reach_back_ten_and_set_never_flip(judging):
    judge = judging(images=14)
    shown = [judge.judge("j") for _ in range(12)]
    judge.wait_for_judgements(12)
    for earlier in reversed(shown[2:]):
        judge.press("z")
        judge.wait_for_image(earlier)
    judge.press("z")
    judge.page.wait_for_timeout(200)
    assert judge.image == shown[2]  # the tenth back, and no further
    assert judge.page.locator("[data-act=accept]").get_attribute("aria-pressed") == "true"
    assert "You answered: Accepted" in judge.page.locator(".judge-earlier").inner_text()
    judge.press("f")
    judge.wait_for_image(shown[3])
    judge.press("z")
    judge.wait_for_image(shown[2])
    judge.press("f")  # the same verdict again: set, not flipped
    for _ in range(10):
        judge.press("Escape")
    until(judge.page, lambda: judge.by_image()[shown[2]] == "reject")
    until(judge.page, lambda: judge.image not in shown)
    assert len(judge.judgements()) == 12
    history = Judgement.objects.filter(
        annotator=judge.person, item__candidate__key__in=shown[2].split("/")
    )
    assert sorted(row.verdict for row in history) == ["accept", "reject"]


def test_undo_reaches_answers_of_an_earlier_visit(judging):
    judge = judging()
    first, second = judge.judge("j"), judge.judge("f")
    judge.wait_for_state("saved")
    judge.open()
    judge.page.wait_for_selector("[data-act=undo]:not([disabled])")
    judge.press("z")
    judge.page.wait_for_function(
        "(src) => document.querySelector('.judge-stage img')?.getAttribute('src') === src",
        arg=second,
    )
    judge.press("j")
    judge.wait_for_verdicts({first: "accept", second: "accept"})


@pytest.mark.field_case(18)
def test_the_browsers_back_shows_the_earlier_answer(judging):
    judge = judging()
    first = judge.judge("j")
    judge.wait_for_state("saved")
    judge.page.go_back()
    judge.page.wait_for_function(
        "(src) => document.querySelector('.judge-stage img')?.getAttribute('src') === src",
        arg=first,
    )
    assert judge.page.locator("[data-act=accept]").get_attribute("aria-pressed") == "true"
    judge.press("f")
    judge.wait_for_verdicts({first: "reject"})
    assert Judgement.objects.filter(annotator=judge.person).count() == 2


@pytest.mark.field_case(5)
def test_skip_takes_a_reason_and_is_no_judgement(judging):
    judge = judging(images=4)
    shown = judge.image
    judge.press("s")
    judge.page.wait_for_selector("#skip-dialog[open]")
    judge.press("2", "Enter")
    judge.page.wait_for_function(
        "(src) => document.querySelector('.judge-stage img')?.getAttribute('src') !== src",
        arg=shown,
    )
    judge.wait_for_state("saved")
    lease = judge.leases().get(state="skipped")
    assert lease.item.candidate.key in shown
    assert judge.judgements() == []
    for _ in range(3):
        assert judge.judge("j") != shown
    judge.page.wait_for_selector("[data-end]", state="attached")


def test_a_flag_reports_the_picture_and_leaves_it_to_be_judged(judging):
    judge = judging()
    shown = judge.image
    judge.press("r")
    judge.page.wait_for_selector("#flag-dialog[open]")
    judge.press("3")
    judge.page.fill("#flag-remark", "a weapon")
    judge.page.click("#flag-dialog .button-primary")
    judge.wait_for_state("saved")
    flag = Flag.objects.get()
    assert (flag.kind, flag.remark) == ("offensive", "a weapon")
    assert judge.image == shown
    assert "Flagged" in judge.page.locator(".judge-earlier").inner_text()
    judge.judge("f")
    assert judge.page.locator(".judge-earlier").inner_text() == ""
    assert judge.wait_for_judgements(1)[0].verdict == "reject"


def test_zoom_by_key_wheel_and_double_click(judging):
    judge = judging()

    def scale() -> float:
        return judge.page.evaluate(
            "new DOMMatrix(getComputedStyle(document.querySelector('.judge-stage img')).transform).a"
        )

    judge.press("+", "+")
    assert scale() == pytest.approx(1.96)
    judge.press("ArrowRight")
    moved = judge.page.evaluate(
        "new DOMMatrix(getComputedStyle(document.querySelector('.judge-stage img')).transform).e"
    )
    assert moved < 0
    judge.press("0")
    assert scale() == 1
    judge.page.locator(".judge-stage").hover()
    judge.page.mouse.wheel(0, -300)
    until(judge.page, lambda: scale() > 1.5)
    judge.page.locator(".judge-stage").dblclick()
    assert scale() == 1
    judge.press("+")
    judge.judge("j")
    assert scale() == 1  # the next picture starts whole


def transform_of(page) -> dict[str, float]:
    return page.evaluate(
        """() => {
            const image = document.querySelector(".judge-stage img");
            const m = new DOMMatrix(getComputedStyle(image).transform);
            return { scale: m.a, x: m.e, y: m.f, page: visualViewport.scale };
        }"""
    )


def test_two_real_fingers_zoom_and_one_moves_the_picture(
    browser, live_server, world, sign_in, problems
):
    """Touches of the browser itself (CDP), so that its own scrolling and zooming take part."""
    phone = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    person = sign_in(world.annotator(), phone)
    campaign = world.open_campaign(images=6)
    page = phone.new_page()
    judge = JudgingPage(page, live_server.url, campaign, person, problems).open()
    box = page.locator(".judge-stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    devtools = phone.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers = [{"x": px, "y": py, "id": i} for i, (px, py) in enumerate(points)]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    touch("touchStart", (x - 20, y), (x + 20, y))
    for step in range(30, 70, 10):
        touch("touchMove", (x - step, y), (x + step, y))
    touch("touchEnd")
    zoomed = transform_of(page)
    assert zoomed["scale"] == pytest.approx(3, abs=0.05)
    assert zoomed["page"] == 1  # the page itself did not zoom

    touch("touchStart", (x, y))
    for step in (20, 40, 60):
        touch("touchMove", (x - step, y - step / 2))
    touch("touchEnd")
    moved = transform_of(page)
    assert moved["x"] - zoomed["x"] == pytest.approx(-60, abs=2)
    assert moved["y"] - zoomed["y"] == pytest.approx(-30, abs=2)

    touch("touchStart", (x - 60, y), (x + 60, y))
    for step in range(50, 10, -10):
        touch("touchMove", (x - step, y), (x + step, y))
    touch("touchEnd")
    assert transform_of(page)["scale"] == pytest.approx(1, abs=0.01)

    page.locator("[data-act=accept]").tap()  # fingers that zoomed judged nothing
    assert [row.verdict for row in judge.wait_for_judgements(1)] == ["accept"]
    page.goto("about:blank")
    page.wait_for_timeout(300)
    phone.close()


def test_guideline_and_keys_open_on_one_key(judging):
    judge = judging()
    closed = "#guide-dialog:not([open])"
    judge.press("g")
    judge.page.wait_for_selector("#guide-dialog[open]")
    judge.press("g")
    judge.page.wait_for_selector(closed, state="attached")
    judge.press("?")
    judge.page.wait_for_selector("#guide-dialog[open]")
    judge.press("Escape")
    judge.page.wait_for_selector(closed, state="attached")
    judge.press("k")
    judge.page.wait_for_selector("#keys-dialog[open]")


def test_shortcuts_are_shown_changed_and_kept(judging):
    judge = judging()
    button = judge.page.locator("[data-act=accept] kbd")
    assert button.inner_text() == "J"
    judge.press("k")
    judge.page.locator("#key-accept").focus()
    judge.press("l")
    judge.page.click("#keys-form .button-primary")
    judge.page.wait_for_selector("#keys-dialog:not([open])", state="attached")
    assert button.inner_text() == "L"
    shown = judge.image
    judge.press("j")
    assert judge.image == shown
    judge.judge("l")
    judge.wait_for_judgements(1)
    judge.open()
    assert judge.page.locator("[data-act=accept] kbd").inner_text() == "L"


@pytest.mark.field_case(16)
def test_clashing_shortcuts_are_refused_in_words(judging):
    judge = judging()
    judge.press("k")
    judge.page.locator("#key-accept").focus()
    judge.press("f")
    judge.page.click("#keys-form .button-primary")
    judge.page.wait_for_function(
        "() => document.querySelector('#keys-problem').textContent.includes('used twice')"
    )
    assert judge.page.locator("#keys-dialog").is_visible()


@pytest.mark.field_case(19)
def test_an_address_that_expired_is_renewed_once_silently(judging, page):
    judge = judging(images=3, visit=False)
    refused: list[str] = []

    def expire(route):
        if route.request.url in refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=403, body="expired")

    page.route("**/i/*", expire)
    judge.open()
    assert refused
    for _ in range(3):
        judge.judge("j")
    judge.wait_for_judgements(3)


def test_a_picture_that_cannot_be_loaded_can_only_be_skipped(judging, page):
    judge = judging(images=3, visit=False)
    page.route("**/i/*", lambda route: route.fulfill(status=404, body="gone"))
    page.goto(judge.url)
    page.wait_for_selector(".judge-broken")
    judge.press("j", "f", "Space")
    page.wait_for_timeout(200)
    assert judge.judgements() == []
    judge.press("s")
    page.wait_for_selector("#skip-dialog[open]")
    assert page.locator("input[value=image_broken]").is_checked()
    judge.press("Enter")
    judge.wait_for_state("saved")
    assert judge.leases().filter(state="skipped").count() == 1


def test_differing_words_are_marked_where_the_campaign_says_so(judging):
    judge = judging(mark_difference=True)
    assert judge.page.locator("[data-text] mark").count() >= 1


def test_differing_words_are_not_marked_where_it_does_not(judging):
    judge = judging(mark_difference=False)
    assert judge.page.locator("[data-text] mark").count() == 0


def test_a_text_from_right_to_left_reads_so(judging):
    judge = judging(images=1, texts=["ثلاث تفاحات حمراء على طبق أبيض"])
    text = judge.page.locator("[data-text]")
    assert text.get_attribute("dir") == "rtl"
    assert text.evaluate("(node) => getComputedStyle(node).direction") == "rtl"


def test_a_screen_reader_hears_the_verdict_and_the_next_text(judging):
    judge = judging()
    judge.wait_for_ahead(1)
    judge.judge("j")
    said = judge.page.locator("[data-announce]").all_inner_texts()
    assert any(words.startswith("Accepted. ") and judge.text in words for words in said)


def test_a_screen_reader_hears_the_verdict_also_when_no_picture_is_ready(judging, context):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    context.set_offline(True)
    judge.judge_until_none_is_ready()
    assert "Accepted." in judge.page.locator("[data-announce]").all_inner_texts()
    context.set_offline(False)
    judge.wait_for_state("saved", 0)


def test_the_time_is_active_time(judging):
    judge = judging(visit=False)
    judge.page.clock.install()
    begun = time.monotonic()
    judge.open()
    judge.page.clock.run_for(3_000)
    judge.press("j")
    passed = (time.monotonic() - begun) * 1000  # the page's clock goes on by itself, too
    judge.page.clock.run_for(1_000)
    assert 2_990 <= judge.wait_for_judgements(1)[0].active_ms <= 3_010 + passed


@pytest.mark.field_case(34)
def test_an_idle_person_is_not_counted_as_working(judging):
    judge = judging(visit=False)
    judge.page.clock.install()
    judge.open()
    judge.page.clock.run_for(600_000)  # ten minutes away from the desk
    judge.press("j")
    judge.page.clock.run_for(1_000)
    assert judge.wait_for_judgements(1)[0].active_ms <= 31_000
