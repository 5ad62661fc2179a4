"""Real metrics on a release in the database, by `run_benchmark`."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.benchmark import benchmarking
from croc_annotate.benchmark.models import MetricRun, Score
from tests.benchmark.metrics.conftest import as_input, picture
from tests.benchmark.metrics.test_registry import package  # noqa: F401 - a fixture
from tests.benchmark.metrics.test_vqascore_openai import api  # noqa: F401 - a fixture
from tests.benchmark.world import close_release, open_release, small_release
from tests.factories import make_candidate, make_pair

pytestmark = pytest.mark.django_db


def run(metric, **options):
    out, err = StringIO(), StringIO()
    call_command("run_benchmark", metric=[metric], stdout=out, stderr=err, **options)
    return out.getvalue() + err.getvalue()


def values():
    return list(
        Score.objects.order_by("image_sha256", "text_sha256").values_list("value", flat=True)
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", ["clipscore", "blip2-itm", "vqascore"])
def test_a_torch_metric_scores_a_release_and_is_not_run_again(name, tmp_path):
    pytest.importorskip("torch", reason="needs the gpu extra")
    from tests.benchmark.metrics import tiny

    build = {"clipscore": tiny.clip, "blip2-itm": tiny.blip2_itm, "vqascore": tiny.llava}[name]
    folder = str(build(tmp_path / "model"))
    small_release(pairs=2, images=2)
    run(name, model=folder, device="cpu")
    first = values()
    assert len(first) == 2 * 2 * 2 * 2
    assert None not in first
    out = run(name, model=folder, device="cpu", batch_size="1")
    assert values() == first
    assert "were stored already" in out
    finished = MetricRun.objects.get()
    assert finished.state == "done"
    assert finished.metric.parts["model"] == folder


def test_the_built_in_metric_needs_no_torch_and_no_options():
    small_release(pairs=2, images=2)
    out = run("onnx-dual-encoder")
    assert "16 scores" in out
    assert None not in values()


@pytest.mark.field_case(39)
def test_at_any_batch_size_and_in_any_order_of_rows_the_winners_are_the_same(monkeypatch):
    """Trap 11 with real inference, through the command, its store and its comparison."""
    release = release_of_pictures(pairs=6, images=3)
    runs = []
    for size in ("1", "2", "3", "16"):
        run("onnx-dual-encoder", batch_size=size, replicate=f"batches of {size}")
        runs.append(MetricRun.objects.latest("pk"))
    forwards = benchmarking.wanted_tasks
    monkeypatch.setattr(benchmarking, "wanted_tasks", lambda *a: forwards(*a)[::-1])
    run("onnx-dual-encoder", batch_size="16", replicate="backwards")
    runs.append(MetricRun.objects.latest("pk"))
    assert [r.timing["batch_sizes"] for r in runs] == [[1], [2], [3], [4, 16], [4, 16]]
    for other in runs[1:]:
        out = StringIO()
        call_command("compare_runs", str(runs[0].pk), str(other.pk), json=True, stdout=out)
        found = json.loads(out.getvalue())
        assert found["compared"] == release.members.count() * 2
        assert found["changed"] == dict.fromkeys(found["changed"], 0)
        assert found["largest"] < 1e-5


def release_of_pictures(*, pairs, images):
    """Pictures that differ, so that hardly a comparison is close to a tie."""
    release, made, candidates = open_release("pictures"), [], []
    for number in range(pairs):
        pair = make_pair(
            slug=f"counting_{number}", category="counting",
            prompt=f"{number + 2} red circles", contrast=f"{number + 3} red circles",
        )  # fmt: skip
        made.append(pair)
        for side in ("prompt", "contrast"):
            for _ in range(images):
                data = as_input(picture(len(candidates), size=(64, 64))).data
                candidates.append(make_candidate(pair=pair, side=side, data=data))
    return close_release(release, made, candidates)


def test_a_metric_of_a_separate_package_is_found_and_scored(package):  # noqa: F811
    small_release(pairs=2, images=1)
    run("longest", option=["bonus=3"])
    run("their_metric:LongestText")
    assert Score.objects.count() == 2 * 2 * 2 * 2
    assert MetricRun.objects.filter(state="done").count() == 2


def test_failed_calls_are_missing_and_asked_again_by_the_next_run(api):  # noqa: F811
    """Trap 14: never 0, and resumed."""
    small_release(pairs=1, images=1)
    options = ["parallel=1", "retries=0", f"base_url={api.base_url}"]
    api.script = [(500, {}, {}), (500, {}, {})]
    out = run("vqascore-openai", option=options)
    stored = [value for value in values() if value is not None]
    assert stored == [pytest.approx(0.8)] * 2
    assert "HTTP 500" in out
    asked = len(api.seen)
    run("vqascore-openai", option=options)
    assert [value for value in values() if value is not None] == [pytest.approx(0.8)] * 4
    assert len(api.seen) == asked + 2, "only what was missing is asked again"


def test_what_cannot_be_had_is_one_sentence_on_stderr(tmp_path):
    small_release(pairs=1, images=1)
    err = StringIO()
    with pytest.raises(CommandError, match="did not work: onnx-dual-encoder"):
        call_command(
            "run_benchmark",
            metric=["onnx-dual-encoder"],
            model=str(tmp_path / "nowhere"),
            stdout=StringIO(),
            stderr=err,
        )
    assert f"there is none at {tmp_path / 'nowhere'}" in err.getvalue()
