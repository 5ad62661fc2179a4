"""Whatever a text and an image mode are: every format gives them back through its own library."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croc_annotate.releases.services import freeze_release
from croc_annotate.releases.verifying import verify_export
from tests.releases.test_export_crochum import ALL_FORMATS, export
from tests.releases.world import NOW, make_world, picture

# Other people's libraries warn about their own insides.
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("default")]

MODES = ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"]
# The bank refuses control characters, words that pandas reads as missing, and more than 1,000.
TEXTS = st.text(
    st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=60
).map(str.strip).filter(bool)  # fmt: skip


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True, raising=False)
    datasets.disable_progress_bars()


@settings(max_examples=6, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.lists(TEXTS, min_size=6, max_size=14, unique=True), st.sampled_from(MODES))
def test_any_text_and_mode_come_back_from_every_format(texts, mode):
    with tempfile.TemporaryDirectory() as folder, transaction.atomic():
        world = make_world()
        for number, text in enumerate(texts, start=1):
            pair = world.pair(f"counting_{number}", prompt=text, contrast=f"{text} not")
            world.verified(pair, data=picture(number, mode=mode))
            world.verified(pair, "contrast", data=picture(500 + number))
        freeze_release(name="croc", campaign=world.campaign, now=NOW, notes="\n".join(texts))
        export(Path(folder, "out"), *ALL_FORMATS, "--tar")
        check_formats(Path(folder, "out"), texts, cache=str(Path(folder, "cache")))
        # The next example begins with an empty database.
        transaction.set_rollback(True)


def check_formats(out: Path, texts: list[str], *, cache: str) -> None:
    """Open each format and find each text twice: with the image of either side."""
    import datasets
    import mlcroissant
    import webdataset
    from huggingface_hub import DatasetCard

    wanted = sorted([*texts, *texts])
    opened = datasets.load_dataset("imagefolder", data_dir=str(out / "imagefolder"),
                                   cache_dir=cache)  # fmt: skip
    assert sorted(opened["test"]["prompt"]) == wanted
    assert {row["image"].size for row in opened["test"]} == {(24, 24)}
    rows = datasets.load_dataset(str(out), "parquet", cache_dir=cache)["test"]
    assert sorted(rows["prompt"]) == wanted
    asked = datasets.load_dataset(str(out), "sft", cache_dir=cache)
    questions = [question for split in asked.values() for question in split["question"]]
    assert len(questions) == 4 * len(texts)
    assert all(any(text in question for question in questions) for text in texts)
    shards = [str(path) for path in (out / "webdataset").glob("*.tar")]
    samples = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    assert sorted(json.loads(sample["json"])["prompt"] for sample in samples) == wanted
    described = mlcroissant.Dataset(jsonld=str(out / "croissant.json"))
    assert described.metadata.ctx.issues.errors == set()
    images = [record["images/prompt"].decode() for record in described.records("images")]
    assert sorted(images) == wanted
    assert DatasetCard.load(out / "README.md").data.to_dict()["license"] == "other"
    assert [check.faults for check in verify_export(out) if not check.ok] == []
