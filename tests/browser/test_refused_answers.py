"""What the server will never take is kept and explained, in the page's language."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.field_case(8)
@pytest.mark.parametrize(
    ("body", "language", "words"),
    [
        ("{}", "en", "The server did not take it."),
        ("{}", "de", "Der Server hat es nicht angenommen."),
        ('{"detail": "This key belongs to another answer."}', "de", "This key belongs"),
    ],
)
def test_a_refused_answer_is_kept_with_its_reason(judging, problems, body, language, words):
    judge = judging(visit=False)
    page = judge.page
    type(judge.person).objects.filter(pk=judge.person.pk).update(language=language)
    page.set_extra_http_headers({"Accept-Language": language})
    judge.open()
    page.route(
        "**/answers",
        lambda route: route.fulfill(status=400, body=body, content_type="application/json"),
    )
    judge.judge("j")
    page.wait_for_selector(".judge-state .badge-warn")
    page.locator(".judge-state").click()
    page.wait_for_selector("#state-dialog[open]")
    assert words in page.locator("#state-refused").inner_text()
    problems[:] = [problem for problem in problems if "400" not in problem]
