from __future__ import annotations

import json
import math
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import ImageInput, MetricError, MetricOptions, fingerprint
from tests.benchmark.metrics.conftest import TEXTS, as_input, picture
from tests.elsewhere import elsewhere

OK = {
    "choices": [
        {
            "logprobs": {
                "content": [
                    {
                        "token": "Yes",
                        "logprob": -0.1,
                        "top_logprobs": [
                            {"token": "Yes", "logprob": math.log(0.7)},
                            {"token": " Yes", "logprob": math.log(0.1)},
                            {"token": "yes", "logprob": math.log(0.1)},
                            {"token": "No", "logprob": math.log(0.1)},
                        ],
                    }
                ]
            }
        }
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 1},
}


class FakeApi(ThreadingHTTPServer):
    """A real HTTP server that answers by a script: (status, body, headers), then always OK."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[tuple[int, object, dict[str, str]]] = []
        self.seen: list[dict] = []
        self.keys: list[str] = []
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: FakeApi

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append(body)
            self.server.keys.append(self.headers["Authorization"])
            status, answer, headers = (
                self.server.script.pop(0) if self.server.script else (200, OK, {})
            )
        if status == 0:  # break the connection
            self.connection.close()
            return
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def api(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    server = FakeApi()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def make(api, **extra):
    metric = registry.create(
        "vqascore-openai",
        options=MetricOptions(extra={"base_url": api.base_url, "parallel": "1", **extra}),
    )
    metric.pauses = []
    metric._sleep = metric.pauses.append
    return metric


@pytest.fixture
def image() -> ImageInput:
    return as_input(picture(1))


def test_the_score_sums_the_tokens_that_read_yes(api, image):
    [[score]] = make(api).score(images=[image], texts=[[TEXTS[0]]]).scores
    assert score == pytest.approx(0.8)
    [body] = api.seen
    assert body["top_logprobs"] == 20
    assert body["max_tokens"] == 1
    text, picture_part = body["messages"][0]["content"]
    assert text["text"] == f'Does this figure show "{TEXTS[0]}"? Please answer yes or no.'
    assert picture_part["image_url"]["url"].startswith("data:image/png;base64,")
    assert api.keys == ["Bearer key-of-the-test"]


def test_yes_outside_the_top_tokens_is_zero_and_not_missing(api, image):
    answer = json.loads(json.dumps(OK))
    answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = [
        {"token": "No", "logprob": -0.01}
    ]
    api.script = [(200, answer, {})]
    assert make(api).score(images=[image], texts=[["a"]]).scores == [[0.0]]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, {}, {}), "HTTP 500"),
        ((400, {"error": {"message": "image too large"}}, {}), "HTTP 400: image too large"),
        ((200, {"choices": []}, {}), "the answer holds no log-probabilities"),
        ((200, b"<html>", {}), "the answer is no JSON object"),
        ((0, b"", {}), "no answer: "),
    ],
)
def test_a_failed_call_is_a_missing_score_with_its_reason_and_never_zero(
    api, image, answer, reason
):
    """Trap 14."""
    api.script = [answer] * 3
    batch = make(api, retries="2").score(images=[image], texts=[["a", "b"]])
    second = 0.8 if answer[0] in {0, 500} or answer[1] == b"<html>" else None
    assert batch.scores[0][0] is None
    assert batch.scores[0][1] == (pytest.approx(second) if second else batch.scores[0][1])
    assert any(one.startswith(reason) for one in batch.reasons)


def test_what_may_pass_is_tried_again_with_growing_pauses(api, image):
    """Trap 14."""
    api.script = [(500, {}, {}), (503, {}, {}), (0, b"", {}), (502, {}, {})]
    metric = make(api)
    assert metric.score(images=[image], texts=[["a"]]).scores == [[pytest.approx(0.8)]]
    assert metric.pauses == [1.0, 2.0, 4.0, 8.0]
    assert len(api.seen) == 5


def test_a_wrong_request_is_not_repeated(api, image):
    api.script = [(400, {"error": {"message": "bad"}}, {})]
    metric = make(api)
    metric.score(images=[image], texts=[["a"]])
    assert metric.pauses == []
    assert len(api.seen) == 1


def test_the_server_says_how_long_to_wait(api, image):
    """Trap 14: rate limits are honoured."""
    api.script = [(429, {}, {"Retry-After": "7"}), (429, {}, {"Retry-After": "900"})]
    metric = make(api)
    assert metric.score(images=[image], texts=[["a"]]).scores == [[pytest.approx(0.8)]]
    assert metric.pauses[0] == 7.0
    assert max(metric.pauses) <= 60.0


def test_calls_start_no_faster_than_allowed(api, image):
    metric = make(api, requests_per_minute="120")
    metric.score(images=[image], texts=[["a", "b", "c"]])
    assert len(metric.pauses) == 2
    assert metric.pauses[0] == pytest.approx(0.5, abs=0.1)
    assert metric.pauses[1] == pytest.approx(1.0, abs=0.2)  # nobody slept here: turns add up


def test_no_call_is_made_that_could_exceed_the_cap_and_a_second_run_goes_on(api, image):
    """Trap 14: 1,000 tokens a call at 5 USD a million; 2,000 are set aside before each."""
    prices = {"usd_per_million_input": "5", "usd_per_million_output": "0"}
    metric = make(api, max_usd="0.021", **prices)
    batch = metric.score(images=[image], texts=[[f"text {n}" for n in range(6)]])
    values = batch.scores[0]
    assert [value is not None for value in values] == [True] * 3 + [False] * 3
    assert batch.reasons == ("spending cap of 0.021 USD reached",)
    assert metric.spent_usd == pytest.approx(0.015)
    assert len(api.seen) == 3
    again = make(api, max_usd="1", **prices).score(images=[image], texts=[["text 3", "text 4"]])
    assert None not in again.scores[0]


def test_many_calls_at_once_keep_the_cap(api, image):
    metric = make(
        api, parallel="8", max_usd="0.1", usd_per_million_input="5", usd_per_million_output="0"
    )
    metric.score(images=[image] * 10, texts=[["a", "b", "c", "d"]] * 10)
    assert metric.spent_usd <= 0.1


def test_a_cap_needs_prices(api):
    with pytest.raises(MetricError, match="max_usd needs the prices"):
        make(api, max_usd="1")


def test_scores_stay_with_their_pairs_when_calls_overlap(api):
    images = [as_input(picture(number)) for number in range(5)]
    batch = make(api, parallel="5").score(images=images, texts=[["a", "b"]] * 5)
    assert [len(row) for row in batch.scores] == [2] * 5
    assert len(api.seen) == 10


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, {}, {}), r"refused the key \(401\)"),
        ((404, {}, {}), r"does not know this model or address \(404\)"),
        (
            (429, {"error": {"code": "insufficient_quota"}}, {}),
            r"no credit left \(429 insufficient_quota\)",
        ),
    ],
)
def test_what_no_retry_can_mend_stops_the_run_with_one_sentence(api, image, answer, sentence):
    api.script = [answer] * 9
    with pytest.raises(MetricError, match=sentence):
        make(api).score(images=[image], texts=[["a"]])
    assert len(api.seen) == 1


def test_no_key_is_one_sentence(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MetricError, match="needs a key: set OPENAI_API_KEY"):
        registry.create("vqascore-openai")


def test_the_key_is_not_in_the_facts(api):
    assert "key-of-the-test" not in json.dumps(make(api).describe().parts())


def test_another_model_or_server_is_another_metric(api):
    one = make(api).describe()
    other = registry.create(
        "vqascore-openai",
        options=MetricOptions(model="gpt-other", extra={"base_url": api.base_url}),
    ).describe()
    assert fingerprint(one) != fingerprint(other)


def test_a_file_that_the_api_does_not_take_is_one_sentence(api):
    import io

    buffer = io.BytesIO()
    picture(1).save(buffer, "BMP")
    bmp = ImageInput(sha256="0" * 64, data=buffer.getvalue())
    with pytest.raises(MetricError, match="PNG, JPEG and WebP files only"):
        make(api).score(images=[bmp], texts=[["a"]])


def test_the_key_is_not_sent_to_where_a_redirect_leads(api, image):
    with elsewhere() as other:
        api.script.append((302, {}, {"Location": other.url}))
        with suppress(MetricError):
            make(api).score(images=[image], texts=[[TEXTS[0]]])
    assert api.keys[0] == "Bearer key-of-the-test"
    assert ["authorization" in headers for headers in other.headers] == [False]
