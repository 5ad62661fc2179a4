"""A tab that is closed in the moment after a key: the answer was on its way into the browser's store."""

from __future__ import annotations

import pytest

from tests.browser.judging import JudgingPage
from tests.browser.test_judging_lossless import judge_offline

pytestmark = pytest.mark.browser


@pytest.mark.field_case(8)
@pytest.mark.parametrize("time", range(4))  # without an explicit commit one time in four loses one
def test_the_last_answer_survives_a_tab_closed_at_once(
    judging, context, live_server, problems, time
):
    judge = judging(images=20)
    given = judge_offline(judge, context)
    judge.page.close()
    context.set_offline(False)
    judge.page = context.new_page()
    again = JudgingPage(judge.page, live_server.url, judge.campaign, judge.person, problems)
    again.page.goto(again.url)
    again.wait_for_judgements(3)
    again.wait_for_state("saved", 0)
    assert again.by_image() == given
    again.page.goto("about:blank")
    again.page.wait_for_timeout(300)
