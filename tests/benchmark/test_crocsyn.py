"""CROCsyn mode against an independent calculation in plain loops."""

from __future__ import annotations

import json
import math
import random
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.benchmark.crocsyn import chance, scaled

SUFFIXES = (
    "___orig_text___orig_img",
    "___contrast_text___orig_img",
    "___contrast_text___contrast_img",
    "___orig_text___contrast_img",
)
SIDES = {  # direction → (higher, lower), as numbers of the suffixes
    "text_forward": (0, 1),
    "text_inverse": (2, 3),
    "image_forward": (0, 3),
    "image_inverse": (2, 1),
}
MODES = ("entity_variation", "entity_placement")


def tables(seed=1, *, missing=0.1, images=5):
    """{(generator, text model): [(mode, unit, image number, [4 scores])]}."""
    rng = random.Random(seed)

    def score():
        return None if rng.random() < missing else rng.randrange(12) / 10

    return {
        (maker, writer): [
            (mode, unit, number, [score() for _ in SUFFIXES])
            for mode in MODES
            for unit in range(12)
            for number in range(images)
        ]
        for maker in ("flux", "sd")
        for writer in ("ds", "qwen")
    }


def write(folder, data, *, columns=False):
    head = ["prompt_id", "prompt", "contrast_prompt", *(f"M{s}" for s in SUFFIXES)]
    if columns:
        head += ["img_gen_model", "text_gen_model", "mode"]
    whole = []
    for (maker, writer), rows in data.items():
        lines = []
        for mode, unit, number, scores in rows:
            cells = [f"{mode}|||topic|||{unit}_____img{number}", f"prompt {unit}", "contrast"]
            cells += ["" if s is None else str(s) for s in scores]
            lines.append("\t".join([*cells, maker, writer, mode] if columns else cells))
        if columns:
            whole += lines
        else:
            place = folder / f"{maker}_{writer}"
            place.mkdir(parents=True)
            half = len(lines) // 2
            for part, chunk in enumerate((lines[:half], lines[half:])):
                (place / f"part{part}_scores.tsv").write_text("\n".join(["\t".join(head), *chunk]))
    if columns:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "concatenated_scores.tsv").write_text("\n".join(["\t".join(head), *whole]))


def expected(data, mode, direction):
    """The accuracy of one mode: flat mean over units, mean over text models."""
    higher, lower = SIDES[direction]
    by_model = []
    for writer in ("ds", "qwen"):
        right = []
        for maker in ("flux", "sd"):
            units = {}
            for row_mode, unit, number, scores in data[maker, writer]:
                if row_mode == mode:
                    units.setdefault(unit, []).append((number, scores[higher], scores[lower]))
            for rows in units.values():
                known = [r for r in rows if r[1] is not None]
                if not known:
                    continue
                if direction.startswith("text"):
                    best = max(known, key=lambda r: (r[1], -r[0]))
                    right.append(best[2] is not None and best[1] > best[2])
                else:
                    others = [r[2] for r in rows if r[2] is not None]
                    right.append(bool(others) and max(r[1] for r in known) > max(others))
        by_model.append(sum(right) / len(right))
    return sum(by_model) / len(by_model)


def evaluate(folder):
    out = StringIO()
    call_command("evaluate_scores", str(folder), mode="crocsyn", json=True, stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.15, 0.6])
def test_the_command_equals_plain_loops(tmp_path, columns, missing):
    data = tables(missing=missing)
    write(tmp_path / "scores", data, columns=columns)
    document = evaluate(tmp_path / "scores")
    for mode in MODES:
        cells = document["metrics"]["M"]["categories"][mode]
        for direction in SIDES:
            accuracy = expected(data, mode, direction)
            assert cells[direction] == pytest.approx(accuracy, abs=1e-12)
            level = 5 / 6 if direction.startswith("text") else 1 / 2
            above = (accuracy - level) / (1 - level)
            scale = above if accuracy > level else (accuracy - level) / level
            assert cells[f"scaled_{direction}"] == pytest.approx(scale, abs=1e-12)


def test_chance_depends_on_the_number_of_images():
    assert chance("text_forward", 5, 5) == pytest.approx(5 / 6)
    assert chance("text_forward", 3, 3) == pytest.approx(3 / 4)
    assert chance("image_inverse", 5, 5) == 0.5
    assert [scaled(a, 5 / 6) for a in (0, 5 / 6, 1)] == pytest.approx([-1, 0, 1])


def test_independent_scores_are_at_chance(tmp_path):
    rng = random.Random(7)
    data = {
        (maker, writer): [
            ("mode", unit, number, [rng.random() for _ in SUFFIXES])
            for unit in range(700) for number in range(5)
        ]
        for maker in ("flux", "sd") for writer in ("ds", "qwen")
    }  # fmt: skip
    write(tmp_path / "scores", data)
    average = evaluate(tmp_path / "scores")["metrics"]["M"]["average"]
    for direction in SIDES:
        assert abs(average[f"scaled_{direction}"]) < 0.12


def test_tied_best_images_are_settled_by_the_lowest_number_not_by_storage_order(tmp_path):
    rows = [("m", 0, 10, [0.9, 0.1, 1, 0]), ("m", 0, 2, [0.9, 0.95, 1, 0])]
    data = {("flux", "ds"): rows, ("flux", "qwen"): rows[::-1]}
    write(tmp_path / "scores", data)
    document = evaluate(tmp_path / "scores")
    # Image 2 decides in both files, and there the contrast text scores higher.
    assert document["metrics"]["M"]["categories"]["m"]["text_forward"] == 0.0
    assert not math.isnan(document["metrics"]["M"]["average"]["text_inverse"])


def test_other_policies_are_refused_in_words(tmp_path):
    write(tmp_path / "scores", tables())
    with pytest.raises(CommandError, match="its own rules"):
        call_command("evaluate_scores", str(tmp_path / "scores"), mode="crocsyn", ties="half")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(CommandError, match=r"no part\*_scores.tsv"):
        evaluate(tmp_path)
