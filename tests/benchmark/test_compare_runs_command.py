"""Two runs of one metric, and results from elsewhere."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from croc_annotate.benchmark.metric import ScoreBatch
from croc_annotate.benchmark.models import ExternalResult, MetricRun, Score
from croc_annotate.benchmark.worst import showcase
from croc_annotate.releases.models import Release
from tests.benchmark.fakes import Counting
from tests.benchmark.layouts import build
from tests.benchmark.world import small_release

FAKE = "tests.benchmark.fakes:Counting"
WAVERING = "tests.benchmark.test_compare_runs_command:Wavering"


def compare(*arguments, **options):
    out = StringIO()
    call_command("compare_runs", *map(str, arguments), stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def two_runs(db):
    Counting.reset()
    small_release(pairs=3, images=2)
    call_command("run_benchmark", metric=[FAKE])
    call_command("run_benchmark", metric=[FAKE], replicate="again")
    return list(MetricRun.objects.order_by("pk"))


def test_a_run_and_its_replicate_that_agree(two_runs):
    document = json.loads(compare(*(r.pk for r in two_runs), json=True))
    assert document["largest"] == 0
    assert document["changed_share"] == 0
    assert document["compared"] == 24


def test_scores_that_move_change_winners_and_a_margin_hides_them(two_runs):
    for score in Score.objects.filter(metric=two_runs[1].metric):
        Score.objects.filter(pk=score.pk).update(value=1 - score.value)
    MetricRun.objects.filter(pk=two_runs[1].pk).update(finished_at=two_runs[0].started_at)
    document = json.loads(compare(*(r.pk for r in two_runs), json=True))
    assert document["changed_share"] == 1.0
    with_margin = json.loads(compare(*(r.pk for r in two_runs), json=True, margin=2.0))
    assert with_margin["changed_share"] == 0


def test_the_listing_and_wrong_calls(two_runs):
    assert "again" in compare(list=True)
    with pytest.raises(CommandError, match="there is no run 999"):
        compare(two_runs[0].pk, 999)
    with pytest.raises(CommandError, match="give two run numbers"):
        compare(two_runs[0].pk)


def test_runs_on_different_releases_are_not_compared(two_runs):
    small_release(name="other")
    call_command("run_benchmark", metric=[FAKE], release="other")
    other = MetricRun.objects.get(release__name="other")
    with pytest.raises(CommandError, match="different releases"):
        compare(two_runs[0].pk, other.pk)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"revision": "2"}, "revision is 1 in run"),
        ({"option": ["name=another"]}, "name is counting"),
    ],
)
def test_runs_of_different_metrics_are_not_compared(two_runs, options, part):
    call_command("run_benchmark", metric=[FAKE], **options)
    other = MetricRun.objects.order_by("pk").last()
    with pytest.raises(CommandError, match=f"different metrics: {part}"):
        compare(two_runs[0].pk, other.pk)


def test_the_noise_floor_of_both_runs_and_what_they_differ_in_are_told(two_runs):
    for run, floor in zip(two_runs, (0.0, 0.00125), strict=True):
        MetricRun.objects.filter(pk=run.pk).update(environment={"noise_floor": floor, "gpu": "G"})
    document = json.loads(compare(*(r.pk for r in two_runs), json=True))
    assert document["noise_floor"] == {"first": 0.0, "second": 0.00125}
    assert document["differ_in"]["replicate"] == ["", "again"]
    assert "device" not in document["differ_in"]
    text = compare(*(r.pk for r in two_runs))
    assert "Noise floor of the runs: 0 and 0.00125; --margin 0.00125 counts" in text
    assert "replicate: – and again" in text


def test_a_run_stores_the_noise_floor_that_is_compared(db):
    """A metric that moves when its image is scored alone says by how much."""
    Counting.reset()
    small_release(pairs=3, images=2)
    call_command("run_benchmark", metric=[WAVERING], batch_size="4", replicate="four")
    call_command("run_benchmark", metric=[WAVERING], batch_size="1")
    four, one = MetricRun.objects.order_by("pk")
    document = json.loads(compare(four.pk, one.pk, json=True))
    assert document["noise_floor"]["first"] == pytest.approx(3e-6)
    assert document["noise_floor"]["second"] == 0
    assert document["largest"] == pytest.approx(3e-6)
    assert document["differ_in"]["batch_sizes"] == [[4], [1]]


class Wavering(Counting):
    """Its scores depend a little on how many images came with them, as on a GPU."""

    def __init__(self, *, options):
        super().__init__(options=options)
        self.needs = "pixels"

    def score(self, *, images, texts):
        batch = super().score(images=images, texts=texts)
        move = 1e-6 * (len(images) - 1)
        return ScoreBatch(scores=[[value + move for value in row] for row in batch.scores])


def external(tmp_path, *rows):
    head = "board,metric,configuration,measure,value,unit,source,source_date,reproduced"
    path = tmp_path / "external.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    out = StringIO()
    call_command("import_external_results", str(path), stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_results_from_elsewhere_keep_what_qualifies_them(tmp_path):
    row = "MS-COCO (Hard),SigLIP 400M,zero-shot,Recall@1,30.4,%,the board,2024-05-31,no"
    assert "Kept 1 new" in external(tmp_path, row)
    assert "0 new, 0 changed and 1 unchanged" in external(tmp_path, row)
    assert "0 new, 1 changed" in external(tmp_path, row.replace("30.4", "30.5"))
    result = ExternalResult.objects.get()
    assert (result.value, result.unit, result.reproduced) == (30.5, "%", False)
    assert result.higher_is_better


@pytest.mark.django_db
def test_a_measure_that_shall_be_low_keeps_its_direction(tmp_path, client):
    path = tmp_path / "external.csv"
    path.write_text(
        "board,metric,configuration,measure,value,unit,source,higher_is_better\n"
        "B,M,fine-tuned,median rank,3,places,S,no\n"
    )
    call_command("import_external_results", str(path), stdout=StringIO())
    assert not ExternalResult.objects.get().higher_is_better
    Release.objects.filter(pk=small_release().pk).update(is_public=True)
    page = client.get(reverse("benchmark:leaderboard")).content.decode()
    assert 'data-tip="lower is better">↓' in page
    assert "fine-tuned" in page
    assert "not reproduced" in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("B,M,C,R@1,many,%,S,,", r"line 3: value 'many'"),
        ("B,M,C,R@1,1,%,,,", r"line 3: source is empty"),
        ("B,M,C,R@1,1,%,S,May 2024,", r"line 3: source_date"),
        ("B,M,C,R@1,1,%,S,,perhaps", r"line 3: reproduced"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_kept(tmp_path, row, message):
    good = "B,N,C,R@1,1,%,S,,"
    with pytest.raises(CommandError, match=message):
        external(tmp_path, good, row)
    assert not ExternalResult.objects.exists()


def test_the_worst_images_of_a_pair_are_those_with_the_most_wrong_comparisons():
    p = [(0.9, 0.1), (0.2, 0.8), (0.5, 0.6)]
    q = [(0.9, 0.3), (0.1, 0.7)]
    layout, scores = build([(p, q)])
    worst = showcase(layout, scores, 0, 0.4)
    assert (worst.prompt_row, worst.contrast_row) == (1, 1)
    assert set(worst.outcomes.values()) == {"wrong"}
    best = showcase(layout, scores, 0, 0.4, best=True)
    assert (best.prompt_row, best.contrast_row) == (0, 0)
    assert set(best.outcomes.values()) == {"right"}


def test_a_pair_with_one_side_shows_one_image():
    layout, scores = build([([(0.2, 0.8), (0.3, 0.3)], [])])
    worst = showcase(layout, scores, 0, 0.0)
    assert (worst.prompt_row, worst.contrast_row) == (0, None)
    assert worst.outcomes == {"text_forward": "wrong"}


@pytest.mark.parametrize("sides", ["both", "one"])
def test_images_without_a_score_are_not_shown_in_place_of_those_that_failed(sides):
    """As with the human row, which has votes on some images only, and ties among them."""
    nothing = (float("nan"), float("nan"))
    p = [nothing, (1.0, 1.0), (1.0, 0.0), nothing]
    q = [nothing, (1.0, 0.0), nothing] if sides == "both" else []
    layout, scores = build([(p, q)])
    worst = showcase(layout, scores, 0, 0.5)
    assert worst.prompt_row == 1
    assert worst.outcomes["text_forward"] == "tie"
    best = showcase(layout, scores, 0, 0.5, best=True)
    assert best.prompt_row == 2
    if sides == "both":
        # The tied image's other text scores as high as the contrast's own image: a tie as well.
        assert (worst.contrast_row, worst.outcomes["image_inverse"]) == (1, "tie")
        assert best.contrast_row == 1
        assert set(best.outcomes.values()) == {"right"}
