"""evaluate_scores gives what the published evaluation printed, and refuses precisely."""

from __future__ import annotations

import gzip
import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.benchmark import score_tables

GOLDEN_SMALL = Path(__file__).parents[1] / "data" / "golden_small"
PUBLISHED = {
    "F_text": "text_forward",
    "I_text": "text_inverse",
    "F_image": "image_forward",
    "I_image": "image_inverse",
}


def run(*arguments, **options):
    out = StringIO()
    call_command("evaluate_scores", *map(str, arguments), stdout=out, **options)
    return out.getvalue()


def evaluate(folder, **options):
    return json.loads(run(folder, json=True, **{"missing": "loss", **options}))


def assert_equals_published(folder):
    expected = json.loads((folder / "expected.json").read_text())
    metrics = evaluate(folder)["metrics"]
    for category, by_metric in expected["raw"].items():
        ours = category.replace("spacial", "spatial")
        for metric, values in by_metric.items():
            cells = metrics[metric]["categories"][ours]
            for theirs, direction in PUBLISHED.items():
                assert cells[direction] == pytest.approx(values[theirs], abs=1e-12)
    for kind in ("text", "image"):
        for metric, by_category in expected["heatmap"][f"{kind}_based"].items():
            if metric != "AVG":
                ours = metrics[metric]["average"][kind]
                assert 2 * ours - 1 == pytest.approx(by_category["AVG"], abs=1e-12)


def test_golden_small_equals_the_published_evaluation():
    assert_equals_published(GOLDEN_SMALL)


def test_golden_equals_the_published_evaluation(real_data):
    assert_equals_published(real_data / "golden")


def test_numbers_of_pairs_and_ties_are_those_of_the_tables():
    expected = json.loads((GOLDEN_SMALL / "expected.json").read_text())
    metrics = evaluate(GOLDEN_SMALL)["metrics"]
    for category, ids in expected["ids"].items():
        cells = metrics["FakeTies"]["categories"][category.replace("spacial", "spatial")]
        assert cells["n_text_forward"] == ids["prompt"]
        assert cells["n_text_inverse"] == ids["contrast"]
        assert cells["n_image_forward"] == ids["both"]
        ties = expected["ties_strict_equal"][category]["FakeTies"]
        counted = sum(
            round(cells[f"ties_{d}"] * cells[f"coverage_{d}"] * cells[f"comparisons_{d}"])
            for d in ("text_forward", "text_inverse")
        )
        assert counted == ties["text"]


def test_missing_scores_are_an_error_by_default():
    with pytest.raises(CommandError, match=r"FakeTies has [\d,]+ missing scores"):
        run(GOLDEN_SMALL)


def test_skipping_shows_the_coverage():
    average = evaluate(GOLDEN_SMALL, missing="skip")["metrics"]["FakeTies"]["average"]
    assert 0.8 < average["coverage"] < 1
    assert evaluate(GOLDEN_SMALL)["metrics"]["FakeStrong"]["average"]["coverage"] == 1


def test_too_few_pairs_have_no_interval_and_say_so_in_words():
    document = evaluate(GOLDEN_SMALL, intervals=True)
    bounds = document["metrics"]["FakeStrong"]["categories"]["action"]["intervals"]
    assert bounds["text_forward"]["low"] is None
    assert "an interval needs 10" in bounds["text_forward"]["reason"]


def test_the_table_ends_with_what_was_done():
    text = run(GOLDEN_SMALL, missing="loss")
    assert "FakeStrong" in text
    assert text.strip().splitlines()[-1].startswith("Evaluated 3 metrics in ")


def test_uncompressed_tables_and_other_column_orders_read_the_same(tmp_path):
    for source in GOLDEN_SMALL.glob("*.tsv.gz"):
        lines = gzip.decompress(source.read_bytes()).decode().splitlines()
        turned = ["\t".join(reversed(line.split("\t"))) for line in lines]
        (tmp_path / source.name.removesuffix(".gz")).write_text("\n".join(turned) + "\n")
    assert evaluate(tmp_path)["metrics"] == evaluate(GOLDEN_SMALL)["metrics"]


def broken(tmp_path, change, name="action_prompt_img_scores.tsv.gz"):
    shutil.copytree(GOLDEN_SMALL, tmp_path / "tables")
    path = tmp_path / "tables" / name
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))
    return tmp_path / "tables"


def replace_line(number, line):
    def change(data):
        lines = data.split(b"\n")
        lines[number - 1] = line(lines[number - 1])
        return b"\n".join(lines)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replace_line(7, lambda line: line + b"\textra"), r"action_prompt.*line 7: 11 fields"),
        (
            replace_line(5, lambda line: line.rsplit(b"\t", 1)[0] + b"\tabc"),
            r"line 5: column FakeTies___contrast_text___orig_img holds 'abc'",
        ),
        (
            replace_line(1, lambda line: line.replace(b"prompt_paths", b"paths")),
            r"line 1: no column prompt_paths",
        ),
        (
            replace_line(1, lambda line: line.replace(b"FakeWeak___contrast", b"Weak___contrast")),
            r"line 1: metric FakeWeak lacks its column",
        ),
        (
            replace_line(3, lambda line: line.replace(b"\taction_", b"\tshapes_", 1)),
            r"id 'shapes_\d+' does not belong to action",
        ),
        (
            lambda data: data.replace(b"photo no. 3", b"photo no. 33", 1),
            r"pair action_3 has another text",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_file_line_and_reason(tmp_path, change, message):
    with pytest.raises(CommandError, match=message):
        run(broken(tmp_path, change), missing="loss")


def test_a_truncated_archive_is_refused(tmp_path):
    folder = tmp_path / "tables"
    shutil.copytree(GOLDEN_SMALL, folder)
    path = folder / "action_prompt_img_scores.tsv.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CommandError, match=r"action_prompt_img_scores\.tsv\.gz"):
        run(folder, missing="loss")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(CommandError, match="no score tables here"):
        run(tmp_path)


def written(folder, images, quote=""):
    """Tables of one category with texts that may be quoted; many parser blocks long if wanted."""
    text = f"{quote}three red apples{quote}"
    for side, own, other in (
        ("prompt", "orig_text___orig_img", "contrast_text___orig_img"),
        ("contrast", "contrast_text___contrast_img", "orig_text___contrast_img"),
    ):
        head = f"id\tprompt\tcontrast\t{side}_paths\tM___{own}\tM___{other}"
        rows = [
            f"counting_{k % 7}\t{text} {k % 7}\tfour {k % 7}\timage {k}.png\t{k % 11}\t{k % 5}"
            for k in range(images)
        ]
        if quote:
            rows = [
                row.replace(f"{quote} ", " ").replace("\tfour", f"{quote}\tfour") for row in rows
            ]
        folder.mkdir(exist_ok=True)
        (folder / f"counting_{side}_img_scores.tsv").write_text("\n".join([head, *rows]) + "\n")
    return folder


def test_quoted_texts_and_plain_ones_read_the_same(tmp_path):
    plain = score_tables.read(written(tmp_path / "a", 40))
    quoted = score_tables.read(written(tmp_path / "b", 40, quote='"'))
    assert quoted.texts == plain.texts
    assert quoted.texts[0] == ("three red apples 0", "four 0")


def test_a_table_longer_than_the_parsers_blocks_keeps_its_pairs_and_order(tmp_path):
    tables = score_tables.read(written(tmp_path, 20_000))
    side = tables.sides["prompt"]
    assert side.pair.tolist() == [k % 7 for k in range(20_000)]
    assert side.columns["M"][0].tolist() == [k % 11 for k in range(20_000)]
    assert side.paths.to_pylist()[-1] == "image 19999.png"
