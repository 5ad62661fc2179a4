"""Crowd workers: one way in, one outcome, one code, no id anywhere else."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from croc_annotate.accounts.models import PlatformIdentity, User
from croc_annotate.annotation.crowd import end_submission
from croc_annotate.annotation.models import Assignment, Participation, Study, Submission
from croc_annotate.annotation.prolific import signature
from croc_annotate.annotation.services import publish_consent_text, publish_guideline
from tests.annotation.test_gold_and_training import add_known
from tests.annotation.world import later, make_open_campaign
from tests.elsewhere import elsewhere

pytestmark = pytest.mark.django_db
PID, STUDY = "5f0c3a1be4b0aa0001e5pid1", "60d9study00001"


@pytest.fixture
def study():
    campaign = make_open_campaign(
        pairs=6,
        invitation_only=True,
        consent_text=publish_consent_text(version="c1", body="We keep your answers."),
    )
    return make_study(campaign)


def make_study(campaign, study_id=STUDY, **fields) -> Study:
    values = {
        "code_completed": "DONE1234",
        "code_screened_out": "SCREEN55",
        "code_no_consent": "NOCONS77",
        "session_cap": 4,
        "reward_pence": 200,
    }
    return Study.objects.create(campaign=campaign, study_id=study_id, **{**values, **fields})


class Worker:
    """A crowd worker's browser."""

    def __init__(self, pid=PID, study_id=STUDY, session="sess1") -> None:
        self.client = Client()
        self.reply = self.enter(pid, study_id, session)

    def enter(self, pid=PID, study_id=STUDY, session="sess1"):
        query = {"PROLIFIC_PID": pid, "STUDY_ID": study_id, "SESSION_ID": session}
        return self.client.get("/study/", query)

    def agree(self, slug):
        return self.client.post(f"/annotate/{slug}/consent/", {"version": "c1"})

    def post(self, slug, name, data):
        return self.client.post(
            f"/api/v1/campaigns/{slug}/{name}", data, content_type="application/json"
        ).json()

    def judge(self, slug, count, verdict="accept"):
        import uuid

        for item in self.post(slug, "claim", {"n": count})["items"]:
            row = {
                "client_key": str(uuid.uuid4()),
                "assignment": item["assignment"],
                "item": item["item"],
                "verdict": verdict,
                "active_ms": 30_000,
            }
            self.post(slug, "answers", {"answers": [row]})

    def end(self, slug):
        return self.client.get(f"/annotate/{slug}/end/")


def test_a_worker_comes_in_agrees_judges_and_gets_the_code(study):
    slug = study.campaign.slug
    worker = Worker()
    assert worker.reply.status_code == 302
    assert worker.reply.url == f"/annotate/{slug}/"
    assert b"DONE1234" not in worker.end(slug).content
    worker.agree(slug)
    worker.judge(slug, 3)
    page = worker.end(slug)
    assert page.status_code == 200
    assert b"DONE1234" not in page.content
    worker.judge(slug, 5)
    page = worker.end(slug).content.decode()
    assert "DONE1234" in page
    assert "https://app.prolific.com/submissions/complete?cc=DONE1234" in page
    row = Submission.objects.get()
    assert row.outcome == "completed"
    assert Assignment.objects.filter(state="leased").count() == 0


@pytest.mark.field_case(22)
def test_the_same_person_resumes_with_a_new_session(study):
    slug = study.campaign.slug
    first = Worker()
    first.agree(slug)
    first.judge(slug, 2)
    second = Worker(session="sess2")
    assert second.reply.status_code == 302
    progress = second.client.get(f"/api/v1/campaigns/{slug}/session").json()["progress"]
    assert progress["mine"] == 2
    row = Submission.objects.get()
    assert (row.session_id, row.earlier_sessions) == ("sess2", ["sess1"])
    assert PlatformIdentity.objects.count() == User.objects.count() == 1


@pytest.mark.field_case(7)
def test_one_person_in_two_studies_of_a_campaign_never_gets_an_item_twice(study):
    slug = study.campaign.slug
    make_study(study.campaign, "60d9study00002", session_cap=3, code_completed="SECOND99")
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 4)
    assert b"DONE1234" in worker.end(slug).content
    worker.enter(study_id="60d9study00002", session="sess9")
    worker.judge(slug, 10)
    assert b"SECOND99" in worker.end(slug).content
    mine = list(User.objects.get().judgements.values_list("item_id", flat=True))
    assert len(mine) == len(set(mine)) == 7


@pytest.mark.field_case(7)
def test_two_people_behind_one_address_are_two(study):
    slug = study.campaign.slug
    for pid in ("a" * 24, "b" * 24):
        worker = Worker(pid=pid, session=pid[:5])
        worker.agree(slug)
        worker.judge(slug, 4)
    assert Submission.objects.count() == User.objects.count() == 2


@pytest.mark.field_case(23)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"study_id": "unknown"}, "not known"),
        ({"pid": ""}, "not complete"),
        ({"pid": "x" * 65}, "not complete"),
        ({"session": "<script>"}, "not complete"),
    ],
)
def test_unknown_studies_and_broken_links_are_refused(study, query, words):
    reply = Worker(**query).reply
    assert reply.status_code == 403
    assert words in reply.content.decode()
    assert User.objects.count() == 0


def test_a_closed_study_lets_nobody_in(study):
    Study.objects.update(active=False)
    assert Worker().reply.status_code == 403


@pytest.mark.field_case(26)
def test_a_blocked_worker_gets_a_sentence(study):
    Worker()
    User.objects.update(is_active=False)
    reply = Worker().reply
    assert reply.status_code == 403
    assert "cannot take part" in reply.content.decode()


@pytest.mark.field_case(26)
def test_declining_leads_to_its_own_code_and_can_be_taken_back(study):
    slug = study.campaign.slug
    worker = Worker()
    reply = worker.client.post(f"/annotate/{slug}/decline/")
    assert reply.url == f"/annotate/{slug}/end/"
    page = worker.end(slug).content.decode()
    assert "NOCONS77" in page
    assert "DONE1234" not in page
    assert worker.post(slug, "claim", {"n": 1})["stage"] == "ended"
    assert worker.agree(slug).status_code == 302
    # The outcome that the platform was told stays.
    assert Submission.objects.get().outcome == "no_consent"
    assert "NOCONS77" in worker.end(slug).content.decode()


@pytest.mark.field_case(26)
def test_logging_out_in_the_middle_leads_to_the_log_in_and_loses_nothing(study):
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 2)
    worker.client.post("/accounts/logout/")
    assert "/accounts/login/" in worker.client.get(f"/annotate/{slug}/").url
    back = Worker(session="sess1")
    assert back.reply.url == f"/annotate/{slug}/"
    assert Participation.objects.get().answered == 2


@pytest.mark.field_case(21)
def test_the_end_seen_twice_ends_once(study):
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 4)
    worker.end(slug)
    first = Submission.objects.get()
    worker.end(slug)
    again = Submission.objects.get()
    assert (first.outcome_at, first.code_shown_at) == (again.outcome_at, again.code_shown_at)


@pytest.mark.field_case(24)
def test_no_code_before_its_outcome_on_any_page(study):
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 2)
    for path in ("", "me/", "end/", "guideline/"):
        page = worker.client.get(f"/annotate/{slug}/{path}", follow=True).content.decode()
        for code in ("DONE1234", "SCREEN55", "NOCONS77"):
            assert code not in page
    # "I am done" before the cap does not complete the study.
    worker.client.post(f"/annotate/{slug}/end/")
    assert "DONE1234" not in worker.end(slug).content.decode()


def test_a_failed_quiz_gives_the_screened_out_code(study):
    campaign = study.campaign
    campaign.quiz_items = 1
    campaign.save()
    add_known(campaign, 2, purpose="training", is_quiz=True, verdict="reject")
    worker = Worker()
    worker.agree(campaign.slug)
    worker.judge(campaign.slug, 1, "accept")
    page = worker.end(campaign.slug).content.decode()
    assert "SCREEN55" in page
    assert Submission.objects.get().outcome == "screened_out"


def test_the_time_limit_ends_the_work(study):
    Study.objects.update(time_limit_minutes=30)
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 1)
    session = worker.client.get(f"/api/v1/campaigns/{slug}/session").json()
    assert session["ends_at"] is not None
    person = Participation.objects.select_related("study", "campaign").get()
    Participation.objects.update(started_at=later(-(10**6)))
    assert worker.post(slug, "claim", {"n": 1})["stage"] == "ended"
    person.refresh_from_db()
    submission = Submission.objects.select_related("study").get()
    ended = end_submission(submission=submission, participation=person, now=later(0))
    assert ended.outcome == "timed_out"
    assert "time for this study is over" in worker.end(slug).content.decode()


def test_when_nothing_is_left_a_worker_completes_below_the_cap(study):
    Study.objects.update(session_cap=50)
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 12)
    assert worker.post(slug, "claim", {"n": 1})["state"] == "nothing"
    assert b"DONE1234" in worker.end(slug).content


def test_projected_pay_by_the_pace(study):
    slug = study.campaign.slug
    worker = Worker()
    worker.agree(slug)
    worker.judge(slug, 2)
    # 30 s an item, four items for 2.00: two minutes, 60.00 an hour.
    assert "60.00" in worker.client.get(f"/annotate/{slug}/me/").content.decode()


def test_no_platform_id_in_pages_logs_or_names(study, caplog):
    slug = study.campaign.slug
    with caplog.at_level(logging.DEBUG):
        worker = Worker()
        worker.agree(slug)
        worker.judge(slug, 2)
        seen = worker.client.get(f"/annotate/{slug}/me/").content.decode()
    assert PID not in caplog.text
    assert PID not in seen
    assert PID not in User.objects.get().username


# --- the platform's side ---------------------------------------------------------------------


class Platform(BaseHTTPRequestHandler):
    """A real HTTP server that answers as the platform's API does: two pages, one key."""

    states: dict[str, str] = {}
    seen: list[str] = []
    leads_to = ""

    def do_GET(self) -> None:
        type(self).seen.append(self.headers.get("Authorization", ""))
        if self.leads_to:
            self.send_response(302)
            self.send_header("Location", self.leads_to)
            self.end_headers()
            return
        if self.headers.get("Authorization") != "Token key-for-tests":
            self._send(401, {"error": "no"})
            return
        rows = [{"id": key, "status": state} for key, state in self.states.items()]
        host = self.headers["Host"]
        second = "page=2" in self.path
        more = {"href": f"http://{host}{self.path}?page=2"} if not second else None
        body = {"results": rows[1:] if second else rows[:1], "_links": {"next": more}}
        self._send(200, body)

    def _send(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@pytest.fixture
def platform(settings):
    Platform.states, Platform.seen, Platform.leads_to = {}, [], ""
    server = HTTPServer(("127.0.0.1", 0), Platform)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.PROLIFIC_API_URL = f"http://127.0.0.1:{server.server_port}"
    settings.PROLIFIC_API_TOKEN = "key-for-tests"
    yield Platform
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.field_case(21)
def test_states_are_mirrored_from_the_platform_and_a_final_one_stays(study, platform, capsys):
    first, second = Worker(), Worker(pid="c" * 24, session="sess2")
    second.agree(study.campaign.slug)
    second.post(study.campaign.slug, "claim", {"n": 2})
    platform.states = {"sess1": "APPROVED", "sess2": "ACTIVE", "other": "ACTIVE"}
    call_command("mirror_studies")
    assert "1 studies, 3 submissions read, 2 states were news" in capsys.readouterr().out
    platform.states = {"sess1": "TIMED-OUT", "sess2": "RETURNED"}
    call_command("mirror_studies")
    states = dict(Submission.objects.values_list("session_id", "platform_state"))
    assert states == {"sess1": "APPROVED", "sess2": "RETURNED"}
    assert Assignment.objects.filter(state="leased").count() == 0
    assert first.reply.status_code == 302


def test_the_platforms_key_is_not_sent_to_where_a_redirect_leads(study, platform):
    with elsewhere() as other:
        platform.leads_to = other.url
        with suppress(CommandError):
            call_command("mirror_studies")
    assert platform.seen == ["Token key-for-tests"]
    assert ["authorization" in headers for headers in other.headers] == [False]


def test_platform_errors_are_told_without_key_or_id(study, platform, settings):
    settings.PROLIFIC_API_TOKEN = "wrong"
    with pytest.raises(CommandError, match="answered 401") as caught:
        call_command("mirror_studies")
    assert "wrong" not in str(caught.value)
    settings.PROLIFIC_API_URL = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("mirror_studies")
    settings.PROLIFIC_API_TOKEN = ""
    with pytest.raises(CommandError, match="PROLIFIC_API_TOKEN"):
        call_command("mirror_studies")


def test_signed_messages_are_taken_others_are_not(study, settings):
    settings.PROLIFIC_WEBHOOK_SECRET = "shared secret"
    Worker()
    body = json.dumps(
        {
            "event_type": "submission.status.change",
            "resource_id": "sess1",
            "status": "AWAITING REVIEW",
        }
    ).encode()
    import time

    now = str(int(time.time()))

    def send(stamp, mark):
        return (
            Client()
            .post(
                "/study/webhook/",
                body,
                content_type="application/json",
                headers={
                    "X-Prolific-Request-Timestamp": stamp,
                    "X-Prolific-Request-Signature": mark,
                },
            )
            .status_code
        )

    good = signature(secret="shared secret", timestamp=now, body=body)
    assert send(now, "nonsense") == 403
    old = str(int(time.time()) - 4000)
    assert send(old, signature(secret="shared secret", timestamp=old, body=body)) == 403
    assert Submission.objects.get().platform_state == ""
    assert send(now, good) == 204
    assert send(now, good) == 204
    assert Submission.objects.get().platform_state == "AWAITING REVIEW"
    settings.PROLIFIC_WEBHOOK_SECRET = ""
    assert send(now, good) == 403


def test_guideline_comes_after_consent_for_workers_too(study):
    campaign = study.campaign
    campaign.guideline = publish_guideline(version="g1", body="Read.")
    campaign.save()
    worker = Worker()
    assert worker.agree(campaign.slug).url == f"/annotate/{campaign.slug}/"
    page = worker.client.get(f"/annotate/{campaign.slug}/", follow=True)
    assert page.redirect_chain[-1][0].endswith("/guideline/")
