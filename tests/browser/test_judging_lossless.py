"""Nothing lost, nothing twice: without network, after errors, without a session, in closed and in second tabs."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from croc_annotate.annotation.models import Assignment, Judgement
from tests.browser.judging import JudgingPage, until

pytestmark = pytest.mark.browser


def judge_offline(judge: JudgingPage, context, count: int = 3) -> dict[str, str]:
    """Judge what is ready without network; returns the verdicts by picture."""
    judge.wait_for_ahead(count)
    context.set_offline(True)
    given = {}
    for i in range(count):
        given[judge.judge("jf"[i % 2])] = ("accept", "reject")[i % 2]
    return given


@pytest.mark.field_case(8)
def test_without_network_answers_wait_and_arrive_later(judging, context):
    judge = judging(images=20)
    given = judge_offline(judge, context)
    judge.wait_for_state("offline", 3)
    assert "3 waiting" in judge.page.locator(".judge-state").inner_text()
    assert judge.judgements() == []
    context.set_offline(False)
    judge.wait_for_state("saved", 0)
    assert judge.by_image() == given
    judge.page.click(".judge-state")
    judge.page.wait_for_function(
        "() => document.querySelector('#state-compared').textContent.includes('has 3 judgements')"
    )


@pytest.mark.field_case(8)
def test_when_nothing_is_left_offline_the_page_says_what_it_waits_for(judging, context):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    context.set_offline(True)
    words = judge.judge_until_none_is_ready().locator("p")
    expect(words).to_contain_text("No network")
    expect(words).to_contain_text("kept in this browser")
    context.set_offline(False)
    judge.wait_for_item()
    judge.wait_for_state("saved", 0)


@pytest.mark.field_case(8)
def test_answers_survive_a_closed_tab(judging, context, live_server, problems):
    judge = judging(images=20)
    given = judge_offline(judge, context)
    judge.wait_for_state("offline", 3)
    judge.wait_until_kept(3)
    judge.page.close()
    context.set_offline(False)
    page = context.new_page()
    again = JudgingPage(page, live_server.url, judge.campaign, judge.person, problems)
    page.goto(again.url)
    again.wait_for_judgements(3)
    again.wait_for_state("saved", 0)
    assert again.by_image() == given
    assert again.wait_for_item().image not in given
    judge.page = page
    page.goto("about:blank")
    page.wait_for_timeout(300)


@pytest.mark.field_case(8)
def test_a_broken_server_costs_nothing(judging, page):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    failures = []

    def fail(route):
        if len(failures) < 2:
            failures.append(route.request.post_data_json)
            route.fulfill(status=500, body="<h1>Server Error (500)</h1>")
        else:
            route.continue_()

    page.route("**/answers", fail)
    given = {judge.judge("j"): "accept", judge.judge("f"): "reject"}
    judge.wait_for_judgements(2)
    judge.wait_for_state("saved", 0)
    assert len(failures) == 2
    assert judge.by_image() == given


@pytest.mark.field_case(10)
def test_a_lost_reply_makes_no_second_row(judging, page):
    judge = judging(images=10)
    judge.wait_for_ahead(2)
    lost = []

    def lose(route):
        reply = route.fetch()  # the server stored it …
        if len(lost) < 3:
            lost.append(reply.status)
            route.abort()  # … and its answer never arrives
        else:
            route.fulfill(response=reply)

    page.route("**/answers", lose)
    shown = judge.judge("j")
    judge.wait_for_state("saved", 0)
    assert lost == [200, 200, 200]
    assert judge.by_image() == {shown: "accept"}
    assert Judgement.objects.count() == 1


@pytest.mark.field_case(10)
def test_a_double_click_answers_once(judging):
    judge = judging(images=10)
    judge.page.evaluate(
        """() => {
            const button = document.querySelector("[data-act=accept]");
            document.querySelector("#judge").addEventListener("click", () => {}, { once: true });
            window.before = document.querySelector(".judge-stage img").getAttribute("src");
            button.click();
        }"""
    )
    judge.wait_for_state("saved", 0)
    assert Judgement.objects.count() == 1


@pytest.mark.field_case(9)
def test_a_lost_session_is_renewed_in_place_and_the_queue_replays(judging, context):
    judge = judging(images=20)
    judge.wait_for_ahead(3)
    context.clear_cookies()
    given = {judge.judge("j"): "accept"}
    judge.page.wait_for_selector("#signin-dialog[open]")
    assert "Answers kept in this browser: 1" in judge.page.locator("#signin-count").inner_text()
    judge.page.click("#signin-dialog [data-close] >> nth=1")
    given[judge.judge("f")] = "reject"  # what is ready can still be judged
    judge.wait_for_state("signed_out", 2)
    assert "signed out" in judge.page.locator(".judge-state").inner_text()
    judge.page.click(".judge-state")
    judge.page.fill("#signin-password", "wrong")
    judge.press("Enter")
    judge.page.wait_for_function(
        "() => document.querySelector('#signin-problem').textContent !== ''"
    )
    judge.page.fill("#signin-password", "a good passphrase")
    judge.press("Enter")
    judge.wait_for_state("saved", 0)
    assert not judge.page.locator("#signin-dialog").is_visible()
    assert judge.by_image() == given
    judge.judge("j")
    judge.wait_for_judgements(3)


@pytest.mark.field_case(9)
def test_somebody_else_signing_in_does_not_get_the_answers(judging, context, world):
    other = world.annotator(username="somebody-else")
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    context.clear_cookies()
    judge.judge("j")
    judge.page.wait_for_selector("#signin-dialog[open]")
    judge.page.fill("#signin-name", "somebody-else")
    judge.page.fill("#signin-password", "a good passphrase")
    judge.press("Enter")
    judge.page.wait_for_function(
        "() => document.querySelector('#signin-problem').textContent.includes('another account')"
    )
    judge.page.wait_for_timeout(500)
    assert Judgement.objects.filter(annotator=other).count() == 0
    judge.page.fill("#signin-name", judge.person.username)
    judge.page.fill("#signin-password", "a good passphrase")
    judge.press("Enter")
    judge.wait_for_state("saved", 0)
    assert Judgement.objects.filter(annotator=judge.person).count() == 1


@pytest.mark.field_case(9)
def test_a_log_in_in_another_tab_rotates_the_token_unnoticed(judging, context, live_server):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    other = context.new_page()
    context.clear_cookies()
    other.goto(f"{live_server.url}/accounts/login/")
    other.fill("#id_username", judge.person.username)
    other.fill("#id_password", "a good passphrase")
    other.press("#id_password", "Enter")
    other.wait_for_url("**/annotate/")
    other.close()
    shown = judge.judge("j")
    judge.wait_for_state("saved", 0)
    assert judge.by_image() == {shown: "accept"}
    assert not judge.page.locator("#signin-dialog").is_visible()


@pytest.mark.field_case(6)
def test_two_tabs_never_show_the_same_picture_and_both_work(
    judging, context, live_server, problems
):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    page = context.new_page()
    second = JudgingPage(page, live_server.url, judge.campaign, judge.person, problems).open()
    assert second.image != judge.image
    mine = {entry["item"] for entry in judge.ahead()}
    assert mine.isdisjoint(entry["item"] for entry in second.ahead())
    seen = [judge.judge("j"), second.judge("f"), judge.judge("j"), second.judge("f")]
    judge.wait_for_judgements(4)
    assert len(set(seen)) == 4
    assert sorted(row.verdict for row in judge.judgements()) == [
        "accept",
        "accept",
        "reject",
        "reject",
    ]
    page.goto("about:blank")
    page.wait_for_timeout(300)
    page.close()


@pytest.mark.field_case(6)
def test_a_second_tab_waits_for_a_first_one_that_is_slow_to_answer(
    judging, context, live_server, problems
):
    judge = judging(images=20)
    judge.wait_for_ahead(2)
    judge.page.evaluate(
        """async () => {
            const { page: { channel } } = await import("/static/js/judge/main.js");
            const receive = channel.receive.bind(channel);
            channel.receive = (data) => setTimeout(() => receive(data), 700);
        }"""
    )
    page = context.new_page()
    second = JudgingPage(page, live_server.url, judge.campaign, judge.person, problems).open()
    assert second.image != judge.image
    mine = {entry["item"] for entry in judge.ahead()}
    assert mine.isdisjoint(entry["item"] for entry in second.ahead())
    page.goto("about:blank")
    page.wait_for_timeout(300)
    page.close()


@pytest.mark.field_case(8)
def test_saved_is_not_said_while_an_answer_is_on_its_way_into_the_store(judging):
    judge = judging(images=10)
    judge.wait_for_ahead(2)
    said, asked = judge.page.evaluate(
        """async () => {
            const { page: { outbox, store } } = await import("/static/js/judge/main.js");
            await outbox.kick();
            const said = [];
            outbox.addEventListener("change", ({ detail }) => said.push([detail.state, detail.waiting]));
            const add = store.add.bind(store);
            store.add = async (...record) => {
                await new Promise((goOn) => setTimeout(goOn, 400)); // a slow disk
                return add(...record);
            };
            document.querySelector("[data-act=accept]").click();
            await outbox.kick(); // reads the store meanwhile
            const leaving = new Event("beforeunload", { cancelable: true });
            dispatchEvent(leaving);
            return [said, leaving.defaultPrevented];
        }"""
    )
    assert asked  # a tab that is closed in this moment would take the answer with it
    assert said
    assert {tuple(one) for one in said} == {("sending", 1)}
    judge.wait_for_state("saved", 0)
    assert len(judge.judgements()) == 1


@pytest.mark.field_case(6)
def test_an_item_answered_on_another_device_ends_in_words_not_an_error(
    judging, browser, live_server, sign_in, problems
):
    judge = judging(images=6)
    elsewhere = browser.new_context()
    sign_in(judge.person, elsewhere)
    page = elsewhere.new_page()
    phone = JudgingPage(page, live_server.url, judge.campaign, judge.person, problems).open()
    assert phone.image == judge.image  # the same lease, on two devices
    shown = phone.judge("f")
    phone.wait_for_judgements(1)
    assert judge.judge("j") == shown
    judge.wait_for_state("saved")
    rows = Judgement.objects.filter(item__campaign=judge.campaign)
    assert rows.filter(superseded_at__isnull=True).count() == 1
    page.goto("about:blank")
    page.wait_for_timeout(300)
    elsewhere.close()


@pytest.mark.field_case(8)
def test_what_the_server_lacks_after_all_is_sent_again(judging, page):
    judge = judging(images=10)
    judge.wait_for_ahead(2)
    page.route(
        "**/answers",
        lambda route: route.fulfill(
            json={
                "results": [
                    {"client_key": a["client_key"], "status": "stored", "message": ""}
                    for a in route.request.post_data_json["answers"]
                ]
            }
        ),
    )  # a server restored from an old backup: it said "stored" and knows nothing
    shown = judge.judge("j")
    judge.wait_for_state("saved", 0)
    assert judge.judgements() == []
    page.unroute("**/answers")
    judge.page.click(".judge-state")
    judge.wait_for_judgements(1)
    assert judge.by_image() == {shown: "accept"}
    judge.page.wait_for_function(
        "() => document.querySelector('#state-compared').textContent.includes('missing')"
    )


@pytest.mark.field_case(2)
def test_an_answer_after_its_lease_ran_out_is_still_kept(judging):
    judge = judging(images=10)
    Assignment.objects.filter(item__campaign=judge.campaign).update(expires_at="2020-01-01T00:00Z")
    shown = judge.judge("j")
    judge.wait_for_judgements(1)
    judge.wait_for_state("saved", 0)
    assert judge.by_image() == {shown: "accept"}


@pytest.mark.field_case(3)
def test_the_three_ends_are_told_apart(judging, world, live_server, browser, sign_in, problems):
    judge = judging(images=1)
    other = browser.new_context()
    sign_in(world.annotator(), other)
    page = other.new_page()
    page.goto(judge.url)
    page.wait_for_selector("[data-end=held]")
    assert "Others hold the last images" in page.locator("[data-end]").last.inner_text()
    assert page.locator("[data-retry-at]").inner_text() != ""
    judge.judge("j")
    judge.page.wait_for_selector("[data-end=finished]")
    page.click("text=Look now")
    page.wait_for_selector("[data-end=finished]")
    page.goto("about:blank")
    page.wait_for_timeout(300)
    other.close()


@pytest.mark.field_case(4)
def test_nothing_for_me_is_not_all_done(judging):
    judge = judging(images=2, min_judgements=2, max_judgements=2)
    judge.judge("j")
    judge.judge("j")
    judge.page.wait_for_selector("[data-end=nothing]")
    assert "Nothing for you" in judge.page.locator(".judge-end").inner_text()


def test_a_paused_campaign_says_so_and_keeps_the_answers(judging):
    from croc_annotate.annotation.services import set_campaign_state

    judge = judging(images=20)
    judge.wait_for_ahead(2)
    set_campaign_state(campaign=judge.campaign, state="paused", actor=None)
    ended = judge.page.locator("#judge[data-end=paused]")
    until(judge.page, lambda: judge.press("j") and ended.count())
    judge.wait_for_state("saved", 0)
    assert len(judge.judgements()) >= 3
