"""The image API source against a real HTTP server on loopback."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.candidates.attempts import times_held
from croc_annotate.candidates.models import Candidate, Generator
from croc_annotate.candidates.storage import read_file
from generation.pipelines import openai_images
from tests import factories
from tests.elsewhere import elsewhere
from tests.generation import fakes
from tests.generation.fakes import noise

pytestmark = pytest.mark.django_db
KEY = "sk-test-123"


def png(number: int) -> bytes:
    out = io.BytesIO()
    noise("api", number).save(out, "PNG")
    return out.getvalue()


class Service:
    """An image service whose next answers a test may script: (status, headers, body) or "drop"."""

    def __init__(self) -> None:
        self.script: list[object] = []
        self.files: list[object] = []  # answers to GET: a status, or (declared length, bytes)
        self.asked: list[dict] = []
        self.times: list[float] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append(
                    {"path": self.path, "key": self.headers["Authorization"], **body}
                )
                service.times.append(time.monotonic())
                answer = service.script.pop(0) if service.script else service.image()
                if answer == "drop":
                    self.connection.close()
                    return
                if answer == "half":
                    self.wfile.write(
                        b'HTTP/1.0 200 OK\r\nContent-Length: 9000\r\n\r\n{"data": [{"b64'
                    )
                    self.connection.close()
                    return
                status, headers, reply = answer
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                answer = service.files.pop(0)
                if isinstance(answer, int):
                    self.send_error(answer)
                    return
                declared, data = answer
                self.send_response(200)
                self.send_header("Content-Length", str(declared))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def image(self) -> tuple:
        data = base64.b64encode(png(len(self.asked))).decode()
        return 200, {}, {"data": [{"b64_json": data, "revised_prompt": "as revised"}]}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def error(status: int, code: str = "", message: str = "no", **headers: str) -> tuple:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, {"error": {"code": code, "message": message}}


@pytest.fixture
def service(monkeypatch) -> Iterator[Service]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = Service()
    yield made
    made.close()


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """Backoff without waiting: what would have been slept."""
    waits: list[float] = []
    monkeypatch.setattr(openai_images.time, "sleep", waits.append)
    return waits


def make_generator(service: Service, **settings: object) -> Generator:
    factories.make_pair()
    base = {"base_url": service.url, "requests_per_minute": 60_000, "max_retries": 3, "timeout": 5}
    return factories.make_generator(
        "api", pipeline="openai-images", model_id="gpt-image-1", settings={**base, **settings}
    )


def generate(seeds: str = "1") -> None:
    call_command("generate", "--here", "--seeds", seeds)


def test_an_image_is_asked_for_and_kept_byte_for_byte(service: Service) -> None:
    generator = make_generator(service, quality="medium", width=1024, height=1536)
    generate()
    candidate = Candidate.objects.get(side="prompt")
    asked = next(a for a in service.asked if a["prompt"] == candidate.pair.prompt)
    assert asked["path"] == "/v1/images/generations"
    assert asked["key"] == f"Bearer {KEY}"
    assert (asked["model"], asked["n"], asked["size"], asked["quality"]) == (
        "gpt-image-1",
        1,
        "1024x1536",
        "medium",
    )
    assert read_file(candidate.image) in {png(1), png(2)}
    assert candidate.provenance["image"]["revised_prompt"] == "as revised"
    assert KEY not in json.dumps(candidate.provenance)
    assert generator.slug == "api"


@pytest.mark.parametrize(
    "answer",
    [
        error(429),
        error(500),
        error(503),
        "drop",
        "half",
        (200, {}, b"{not json"),
        (502, {}, "<h1>défaut</h1>".encode("latin-1")),
        (200, {}, "défaut".encode("latin-1")),
    ],
)
def test_a_passing_fault_is_retried_with_growing_waits(
    service: Service, slept: list[float], answer: object
) -> None:
    make_generator(service)
    service.script = [answer, answer]
    generate()
    assert Candidate.objects.rendered().count() == 2
    assert len(service.asked) == 4
    backoff = [wait for wait in slept if wait > 0.1]
    assert 0.5 <= backoff[0] <= 1 <= backoff[1] <= 2


def test_the_service_s_own_wish_to_wait_is_honoured(service: Service, slept: list[float]) -> None:
    make_generator(service)
    service.script = [error(429, Retry_After="7")]
    generate()
    assert 7.0 in slept


def test_a_refused_text_is_a_failure_with_the_service_s_words(service: Service) -> None:
    make_generator(service)
    service.script = [error(400, "moderation_blocked", "Your request was rejected")]
    generate()
    assert (
        Candidate.objects.failed().get().error
        == "refused by the service (400): Your request was rejected"
    )
    assert Candidate.objects.rendered().count() == 1


@pytest.mark.parametrize("answer", [error(401), error(403), error(429, "insufficient_quota")])
def test_a_wrong_key_or_an_empty_account_stops_the_run_at_once(
    service: Service, answer: object
) -> None:
    make_generator(service)
    service.script = [answer] * 9
    with pytest.raises(CommandError, match="the service answered"):
        generate("1-20")
    assert len(service.asked) <= 2
    assert Candidate.objects.requested().count() == 40


def test_a_service_that_stays_away_leaves_its_candidates_waiting_and_a_later_run_goes_on(
    service: Service, slept
) -> None:
    make_generator(service)
    service.script = [service.image(), service.image(), *[error(503)] * 100]
    with pytest.raises(CommandError, match="no image after 4 attempts"):
        generate("1-5")
    assert 1 <= Candidate.objects.rendered().count() <= 2
    assert not Candidate.objects.failed().exists()
    service.script = []
    before = set(Candidate.objects.rendered().values_list("pk", "sha256"))
    generate("1-5")
    assert Candidate.objects.rendered().count() == 10
    assert before <= set(Candidate.objects.values_list("pk", "sha256"))


def test_the_spending_cap_is_never_passed_and_switches_the_generator_off(service: Service) -> None:
    generator = make_generator(service, price_per_image=0.04, max_spend=0.2)
    with pytest.raises(CommandError, match=r"max_spend of 0\.20"):
        generate("1-10")
    assert len(service.asked) <= 5
    assert Candidate.objects.rendered().count() == len(service.asked)
    generator.refresh_from_db()
    assert not generator.active
    with pytest.raises(CommandError, match="switched off"):
        call_command("generate", "--here", "--generator", "api")
    generator.settings["max_spend"] = 1.0
    generator.active = True
    generator.save()
    generate("1-10")
    assert Candidate.objects.rendered().count() == 20


def test_requests_keep_to_their_pace(service: Service) -> None:
    make_generator(service, requests_per_minute=600)
    generate("1-3")
    assert len(service.times) == 6
    assert service.times[-1] - service.times[0] > 0.45


def test_a_key_that_is_not_set_is_asked_for_by_name(service: Service, monkeypatch) -> None:
    make_generator(service, api_key_env="OTHER_KEY")
    monkeypatch.delenv("OTHER_KEY", raising=False)
    with pytest.raises(CommandError, match="set OTHER_KEY"):
        generate()


def test_an_answer_without_an_image_is_a_failure(service: Service) -> None:
    make_generator(service)
    service.script = [
        (200, {}, {"data": []}),
        (200, {}, {"data": [{"b64_json": "no base64!"}]}),
        (200, {}, {"data": ["an image"]}),
        (200, {}, {"data": [{"url": "http://[half"}]}),
    ]
    generate("1-2")
    assert Candidate.objects.failed().count() == 4
    assert all(
        "an answer without an image" in error
        for error in Candidate.objects.values_list("error", flat=True)
    )


def test_an_image_behind_an_address_is_fetched_with_patience_as_it_is_paid_for(
    service: Service, slept
) -> None:
    make_generator(service)
    url = f"{service.url}/files/1.png"
    service.script = [(200, {}, {"data": [{"url": url}]})] * 2
    data = png(7)
    service.files = [503, (len(data), data[:100]), (len(data), data), *[404] * 4]
    generate()
    assert len(service.asked) == 2
    assert [read_file(c.image) for c in Candidate.objects.rendered()] == [data]
    assert "the image's address could not be read: <HTTPError 404" in (
        Candidate.objects.failed().get().error
    )


def test_what_dead_workers_may_have_been_billed_for_counts_as_spent(service: Service) -> None:
    generator = make_generator(service, price_per_image=0.04, max_spend=0.2)
    pair = factories.make_pair()
    factories.make_candidate(pair=pair, generator=generator, seed=1, rendered=False, attempts=3)
    with pytest.raises(CommandError, match=r"max_spend of 0\.20"):
        generate("1-10")
    assert len(service.asked) == 2


def test_a_worker_that_comes_from_another_generator_buys_up_to_the_cap(
    service: Service,
) -> None:
    factories.make_generator("another", pipeline=fakes.PATH, settings={"batch_size": 8})
    make_generator(service, price_per_image=0.04, max_spend=0.04)
    with pytest.raises(CommandError, match=r"max_spend of 0\.04"):
        call_command(
            "generate", "--here", "--seeds", "1-9", "--generator", "another", "--generator", "api"
        )
    rendered = Candidate.objects.rendered().values_list("generator__slug", flat=True)
    assert {slug: list(rendered).count(slug) for slug in rendered} == {"another": 18, "api": 1}


def test_failures_that_are_asked_for_again_do_not_make_the_cap_forget(service: Service) -> None:
    make_generator(service, price_per_image=0.04, max_spend=0.2)
    nothing = (200, {}, {"data": []})  # billed, and no image in it
    service.script = [nothing] * 4
    generate("1-2")
    assert Candidate.objects.failed().count() == 4
    with pytest.raises(CommandError, match=r"max_spend of 0\.20"):
        call_command("generate", "--here", "--seeds", "1-2", "--retry-failed")
    assert len(service.asked) == 5
    kept = Candidate.objects.rendered().get()
    assert (kept.attempts, "earlier_attempts" in kept.provenance) == (2, False)


@pytest.mark.parametrize("answer", ["drop", "half", (200, {}, b"{not json")])
def test_a_paid_request_whose_answer_is_lost_is_not_sent_again_by_itself(
    service: Service, slept: list[float], answer: object
) -> None:
    make_generator(service, price_per_image=0.04)
    service.script = [answer]
    generate()
    assert len(service.asked) == 2
    assert "no answer came, and it may be billed" in Candidate.objects.failed().get().error
    assert Candidate.objects.rendered().count() == 1


def test_a_paid_service_that_answers_nothing_is_left_alone_for_a_while(
    service: Service, slept: list[float]
) -> None:
    make_generator(service, price_per_image=0.04)
    service.script = ["drop"] * 99
    with pytest.raises(CommandError, match="3 requests in a row had no answer"):
        generate("1-9")
    assert len(service.asked) == 3
    assert Candidate.objects.failed().count() == 3
    assert set(Candidate.objects.requested().values_list("attempts", flat=True)) == {0}


def test_a_paid_service_that_cannot_be_reached_is_tried_again_and_costs_nothing(
    service: Service, slept: list[float]
) -> None:
    generator = make_generator(service, price_per_image=0.04)
    service.close()
    with pytest.raises(CommandError, match="no image after 4 attempts"):
        generate()
    assert set(Candidate.objects.values_list("state", "attempts")) == {("requested", 0)}
    assert times_held(generator=generator) == 0


def test_an_image_that_was_paid_for_and_could_not_be_stored_counts_as_spent(
    service: Service, monkeypatch
) -> None:
    generator = make_generator(service, price_per_image=0.04)

    def away(**_: object) -> bool:
        raise SystemExit("killed while it waited for the database")

    monkeypatch.setattr("generation.worker.keep_image", away)
    with pytest.raises(SystemExit):
        generate("1-3")
    assert len(service.asked) == 1
    assert not Candidate.objects.exclude(claimed_by="").exists()
    assert times_held(generator=generator) == 1


def test_the_key_is_not_sent_to_where_a_redirect_leads(
    service: Service, slept: list[float]
) -> None:
    make_generator(service)
    with elsewhere() as other:
        service.script = [(302, {"Location": other.url}, {})]
        with suppress(CommandError):
            generate()
    assert service.asked[0]["key"] == f"Bearer {KEY}"
    assert ["authorization" in headers for headers in other.headers] == [False]
