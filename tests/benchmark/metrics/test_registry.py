from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from croc_annotate.benchmark import registry
from croc_annotate.benchmark.metric import (
    ImageInput,
    Metric,
    MetricError,
    MetricFacts,
    MetricOptions,
    ScoreBatch,
    fingerprint,
)

PACKAGE = '''
from croc_annotate.benchmark.metric import MetricFacts, ScoreBatch


class LongestText:
    """A metric that likes long texts."""

    needs = "hash"

    def __init__(self, *, options):
        self.bonus = float(options.extra.get("bonus", "0"))

    def describe(self):
        return MetricFacts(name="longest", settings={"bonus": str(self.bonus)})

    def score(self, *, images, texts):
        return ScoreBatch(scores=[[len(text) + self.bonus for text in own] for own in texts])

    def close(self):
        pass


class NoScore:
    needs = "hash"

    def __init__(self, *, options):
        pass


class TakesNothing:
    def __init__(self):
        pass
'''

IMAGE = ImageInput(sha256="ab" * 32)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of somebody else, installed in a folder of its own with an entry point."""
    (tmp_path / "their_metric.py").write_text(PACKAGE)
    info = tmp_path / "their_metric-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-metric\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[croc_annotate.metrics]\nlongest = their_metric:LongestText\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("their_metric", None)


def test_a_metric_of_an_installed_package_is_found_and_scores(package):
    assert "longest" in registry.names()
    metric = registry.create("longest", options=MetricOptions(extra={"bonus": "2"}))
    assert metric.score(images=[IMAGE], texts=[["a", "abc"]]).scores == [[3.0, 5.0]]
    assert isinstance(metric, Metric)


def test_a_metric_is_found_by_its_dotted_path_without_an_entry_point(package):
    metric = registry.create("their_metric:LongestText")
    assert metric.score(images=[IMAGE], texts=[["four"]]).scores == [[4.0]]


def test_a_package_cannot_take_a_name_of_ours(package):
    (package / "their_metric-1.0.dist-info" / "entry_points.txt").write_text(
        "[croc_annotate.metrics]\nrandom = their_metric:LongestText\n"
    )
    importlib.invalidate_caches()
    assert registry.create("random").describe().name == "random"
    assert registry.names().count("random") == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("clipscor", "There is no metric 'clipscor'; did you mean clipscore?"),
        ("zzz", "There is no metric 'zzz'; known are random, human, clipscore"),
        ("no_such_package:Class", "there is no module 'no_such_package' on the Python path"),
        ("json:Missing", "json has no 'Missing'"),
        ("their_metric:NoScore", "lacks one of needs, describe, score, close"),
        ("their_metric:TakesNothing", "cannot be built with the one argument `options`"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(package, name, sentence):
    with pytest.raises(MetricError) as caught:
        registry.create(name)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path):
    code = textwrap.dedent(
        """
        import sys
        sys.modules["torch"] = None
        sys.modules["onnxruntime"] = None
        from croc_annotate.benchmark import registry
        from croc_annotate.benchmark.metric import MetricError
        for name in ("clipscore", "onnx-dual-encoder"):
            try:
                registry.create(name)
            except MetricError as error:
                print(error)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.strip().splitlines()
    assert "'torch'" in first
    assert "croc-annotate[gpu]" in first
    assert "'onnxruntime'" in second
    assert "croc-annotate[onnx]" in second


def test_the_registry_and_the_reference_metrics_import_no_torch():
    code = (
        "import sys; from croc_annotate.benchmark import registry; registry.create('random');"
        "registry.names(); print(sorted({'torch', 'transformers', 'django'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_listed_metric_has_a_class_at_its_path():
    pytest.importorskip("torch", reason="needs the gpu extra")
    for path in registry.METRICS.values():
        module, _, name = path.partition(":")
        cls = getattr(importlib.import_module(module), name)
        assert {"describe", "score", "close", "needs"} <= set(dir(cls)), path
        assert cls.__doc__, path


def test_equal_facts_have_equal_fingerprints_and_any_part_changes_them():
    base = MetricFacts(name="m", model="x", settings={"a": "1", "b": "2"})
    same = MetricFacts(name="m", model="x", settings={"b": "2", "a": "1"}, label="Other label")
    assert fingerprint(base) == fingerprint(same)
    for change in (
        {"name": "n"}, {"model": "y"}, {"revision": "r"}, {"prompt": "p"}, {"preprocessing": "q"},
        {"image_backend": "pil"}, {"dtype": "float16"}, {"code_version": "2"}, {"settings": {}},
    ):  # fmt: skip
        assert fingerprint(MetricFacts(**{"name": "m", "model": "x"} | change)) != fingerprint(base)


def test_a_score_batch_keeps_missing_scores_apart_from_zero():
    batch = ScoreBatch(scores=[[0.0, None]])
    assert batch.scores[0][0] == 0.0
    assert batch.scores[0][1] is None


def test_the_example_in_the_documentation_works(tmp_path, monkeypatch):
    from PIL import Image

    page = (Path(__file__).parents[3] / "docs" / "adding-a-metric.md").read_text("utf-8")
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    (tmp_path / "their_brightness.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    metric = registry.create("their_brightness:Brightness")
    images = [
        ImageInput(sha256="1" * 64, pixels=Image.new("RGB", (4, 4), colour))
        for colour in ("black", "white")
    ]
    batch = metric.score(images=images, texts=[["a"], ["a", "abc"]])
    assert batch.scores == [[-1.0], [254.0, 252.0]]
    metric.close()


def test_the_documentation_lists_every_metric():
    page = (Path(__file__).parents[3] / "docs" / "adding-a-metric.md").read_text("utf-8")
    assert [name for name in registry.METRICS if f"| `{name}` |" not in page] == []
