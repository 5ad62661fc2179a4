"""The whole installation as processes: people judge through nginx while parts of it fail.

Small forms; the sizes and times of a real study are in test_soak.py.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.deploy import faults
from tests.deploy.study import Study, judge_through, running_study
from tests.deploy.topology import Topology, find_nginx

pytestmark = [
    pytest.mark.skipif(find_nginx() is None, reason="no nginx: install Debian's nginx-light"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def study(
    tmp_path_factory: pytest.TempPathFactory,
    maybe_small_disk: Path | None,
    maybe_clock_shim: Path | None,
) -> Iterator[Study]:
    topology = Topology(
        folder=tmp_path_factory.mktemp("topology"),
        postgres_folder=maybe_small_disk / "postgres" if maybe_small_disk else None,
        clock_shim=maybe_clock_shim,
    )
    with running_study(topology, candidates=2_000, judgements=600, people=8) as running:
        yield running


def test_people_judge_through_nginx_without_an_error(study: Study):
    report = judge_through(study, faults.none(), seconds=4, think=0.1, people=8)
    assert report["failures"] == {}
    assert set(report["statuses"]) == {"stored"}


def fetch(study: Study, port: int, path: str) -> tuple[dict[str, str], bytes]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Cookie": f"sessionid={study.sessions[0]}"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return dict(response.headers), response.read()


def image_path(study: Study) -> str:
    with study.database() as connection:
        row = connection.execute("select key from candidates_candidate limit 1").fetchone()
    assert row
    return f"/i/{row[0]}"


def test_image_bytes_come_from_nginx_not_from_python(study: Study):
    path = image_path(study)
    headers, body = fetch(study, study.topology.web_port, path)
    assert body == b""
    assert headers["X-Accel-Redirect"] == "/protected-media/d.png"
    headers, body = fetch(study, study.topology.port, path)
    assert "X-Accel-Redirect" not in headers
    assert body == (study.topology.media / "d.png").read_bytes()


def test_of_many_images_python_sends_no_byte(study: Study):
    """Counted by nginx: what it sent, and what it got from gunicorn for it (headers)."""
    judge_through(study, faults.none(), seconds=4, think=0.1, people=4)
    images, sent, python = study.image_traffic()
    size = (study.topology.media / "d.png").stat().st_size
    assert images > 3
    assert sent > images * size
    assert python < images * 1500  # headers; the smallest image here is larger
    assert size > 1500


def test_nobody_is_let_through_to_the_files_themselves(study: Study):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(study, study.topology.port, "/protected-media/d.png")


def test_logs_of_nginx_hold_no_address_no_query_and_no_secret(study: Study):
    with pytest.raises(urllib.error.HTTPError):
        fetch(study, study.topology.port, "/join/the-secret-of-a-link?PROLIFIC_PID=zz-participant")
    logs = study.topology.folder / "nginx"
    text = "".join((logs / name).read_text() for name in ("access.log", "error.log"))
    assert len(text) > 100
    for word in (
        "the-secret",
        "zz-participant",
        "127.0.0.1",
        "Mozilla",
        "Python-urllib",
        "sessionid",
    ):
        assert word not in text


def test_static_files_are_named_by_their_content_and_kept(study: Study):
    _, page = fetch(study, study.topology.port, "/accounts/login/")
    found = re.search(rb'src="(/static/js/app\.[0-9a-f]{12}\.js)"', page)
    assert found, "the page names no hashed script"
    headers, _ = fetch(study, study.topology.port, found[1].decode())
    assert "immutable" in headers["Cache-Control"]
    headers, _ = fetch(study, study.topology.port, "/static/js/app.js")
    assert "immutable" not in headers["Cache-Control"]


def test_sign_ins_are_limited_by_the_browser_not_by_the_proxy_before_nginx(study: Study):
    """All requests come from one address here, as behind a proxy that ends TLS."""

    def status(browser: str) -> int:
        url = f"{study.topology.url}/accounts/login/"
        request = urllib.request.Request(url, headers={"X-Forwarded-For": f"6.6.6.6, {browser}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(status, ["203.0.113.1"] * 80))
    assert 429 in first
    assert status("203.0.113.2") == 200


def test_metrics_add_up_all_web_processes(study: Study):
    def answered() -> float:
        request = urllib.request.Request(
            f"{study.topology.url}/metrics", headers={"Authorization": "Bearer topology"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read().decode()
        found = re.search(r'^croc_http_responses_total\{status="2xx"\} ([\d.e+]+)$', text, re.M)
        return float(found[1]) if found else 0.0

    before = answered()
    for _ in range(40):
        fetch(study, study.topology.port, "/accounts/profile/")
    assert {answered() - before for _ in range(10)} == {40.0}


def test_a_killed_web_worker_loses_no_answer(study: Study):
    report = judge_through(study, faults.web_worker_killed(), seconds=5, think=0.1, people=6)
    assert report["felt"] < 5


def test_a_crashed_postgresql_loses_no_answer(study: Study):
    report = judge_through(study, faults.postgres_crashes(1), seconds=6, think=0.1, people=6)
    assert report["failures"], "the fault was not felt"


def test_a_crashed_redis_loses_no_answer(study: Study):
    judge_through(study, faults.redis_crashes(1), seconds=5, think=0.1, people=6)


def test_a_store_that_refuses_loses_no_answer(study: Study):
    report = judge_through(study, faults.store_refuses(1.5), seconds=5, think=0.1, people=6)
    assert report["failures"], "the fault was not felt"


def test_a_clock_that_jumps_loses_no_answer(study: Study, clock_shim: Path):
    judge_through(study, faults.clock_jumps(2), seconds=5, think=0.1, people=6)
    assert study.answers_from_the_future(), "no answer was stored by the wrong clock"


def test_a_full_disk_loses_no_answer(study: Study, small_disk: Path):
    starts = study.topology.postgres.starts
    report = judge_through(study, faults.disk_full(small_disk, 3), seconds=6, think=0.1, people=6)
    assert report["failures"] or study.topology.postgres.starts > starts, "it was not felt"


@pytest.fixture(scope="module")
def study_on_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    topology = Topology(folder=tmp_path_factory.mktemp("topology"), with_s3=True)
    with running_study(topology, candidates=2_000, judgements=600, people=4) as running:
        yield running


def test_images_in_a_store_come_through_nginx_and_tell_nothing(study_on_s3: Study):
    judge_through(study_on_s3, faults.none(), seconds=3, think=0.1, people=4)
    images, sent, python = study_on_s3.image_traffic()
    assert images > 3
    assert python < images * 1500 < sent
    headers, body = fetch(study_on_s3, study_on_s3.topology.port, image_path(study_on_s3))
    assert body.startswith(b"\x89PNG")
    assert headers["Cache-Control"].startswith("private")
    named = {name.lower() for name in headers}
    assert not {n for n in named if n.startswith("x-amz")} | named & {"etag", "last-modified"}


def test_a_silent_store_loses_no_answer(study_on_s3: Study):
    judge_through(study_on_s3, faults.store_refuses(2), seconds=5, think=0.1, people=4)
