"""The published folder and the published score tables, brought together by their file names."""

from __future__ import annotations

import csv
import io
import json
import random
from io import StringIO

import pytest
from django.core.management import call_command
from PIL import Image

pytestmark = pytest.mark.django_db

PAIRS = {
    "negation_1": ("a table with a vase", "a table without a vase"),
    "spacial_relation_1": ("a cat left of a dog", "a cat right of a dog"),
    "spacial_relation_10": ("a cup on a book", "a book on a cup"),
}
HEADS = {
    "prompt": ("M___orig_text___orig_img", "M___contrast_text___orig_img"),
    "contrast": ("M___contrast_text___contrast_img", "M___orig_text___contrast_img"),
}


def picture(number):
    out = io.BytesIO()
    Image.new("RGB", (16, 16), (number * 7 % 256, number, 90)).save(out, "PNG")
    return out.getvalue()


def image_path(pair, side, number):
    return f"{pair.rpartition('_')[0]}/{side}/{pair}___{side}___FLUX_1_dev___image{number}.png"


@pytest.fixture
def published(tmp_path):
    """A folder of images and one of score tables, both spelled as published.

    Score tables name the evaluated images of negation as contrast images; the folder keeps them
    as alt_contrast ones.
    """
    count, rng = 0, random.Random(3)
    tables = {}
    with (tmp_path / "meta").open("w", newline="") as out:
        meta = csv.writer(out, delimiter="\t", lineterminator="\n")
        meta.writerow(
            ["id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths"]
        )
        for pair, texts in PAIRS.items():
            lists = {"prompt": [], "contrast": [], "alt_contrast": []}
            evaluated = "alt_contrast" if pair.startswith("negation") else "contrast"
            for side, kept in (("prompt", "prompt"), ("contrast", evaluated)):
                for number in (3, 12):
                    count += 1
                    path = image_path(pair, kept, number)
                    lists[kept].append(path)
                    target = tmp_path / "crochum" / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(picture(count))
                    scores = [rng.randrange(10) / 10 for _ in range(2)]
                    key = (pair.rpartition("_")[0], side)
                    row = [pair, *texts, f"croc_hum/{image_path(pair, side, number)}", *scores]
                    tables.setdefault(key, []).append(row)
            meta.writerow([pair, *texts, *(repr(paths) for paths in lists.values())])
    (tmp_path / "meta").rename(tmp_path / "crochum" / "croc_hum_metadata.tsv")
    (tmp_path / "scores").mkdir()
    for (category, side), rows in tables.items():
        with (tmp_path / "scores" / f"{category}_{side}_img_scores.tsv").open("w") as out:
            writer = csv.writer(out, delimiter="\t", lineterminator="\n")
            writer.writerow(["id", "prompt", "contrast", f"{side}_paths", *HEADS[side]])
            writer.writerows(rows)
    return tmp_path


def test_published_scores_find_the_published_images(published):
    call_command("import_crochum", str(published / "crochum"), release="Published",
                 stdout=StringIO())  # fmt: skip
    call_command("import_scores", str(published / "scores"), stdout=StringIO())
    board, tables = StringIO(), StringIO()
    call_command("leaderboard", format="json", draws=50, stdout=board)
    call_command("evaluate_scores", str(published / "scores"), json=True, stdout=tables)
    ours = json.loads(board.getvalue())["metrics"]["M"]["categories"]
    theirs = json.loads(tables.getvalue())["metrics"]["M"]["categories"]
    assert set(ours) == {"negation", "spatial_relation"}
    for category, cells in theirs.items():
        assert {key: ours[category][key] for key in cells} == cells


def test_scores_come_back_in_the_published_spelling(published):
    call_command("import_crochum", str(published / "crochum"), release="Published",
                 stdout=StringIO())  # fmt: skip
    call_command("import_scores", str(published / "scores"), stdout=StringIO())
    call_command("export_scores", str(published / "out"), stdout=StringIO())
    rows = (published / "out" / "negation_contrast_img_scores.tsv").read_text().splitlines()
    assert "negation/alt_contrast/negation_1___alt_contrast___FLUX_1_dev___image3.png" in rows[1]
    again = StringIO()
    call_command("import_scores", str(published / "out"), stdout=again)
    assert "unchanged" in again.getvalue()
