"""Our files read as the published scripts read them, by a reader that shares no code with ours."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croc_annotate.releases.published import (
    METADATA_NAME,
    SIDES,
    PublishedLayoutError,
    PublishedRow,
    generator_fields,
    image_stem,
    parse_image_name,
    quoted,
    read_table,
    table_head,
    table_line,
    to_published,
)
from croc_annotate.releases.services import freeze_release
from tests.releases.test_export_crochum import export
from tests.releases.world import NOW, full_world

CATEGORIES = (
    "action", "body_parts", "counting", "negation", "shapes", "size_relation", "spacial_relation",
    "things_parts",
)  # fmt: skip


def read_as_published(root: str) -> tuple[list[dict], dict[str, dict[str, int]]]:
    """Rows with loaded paths, and images by generator group, category by category.

    The habits of the published code: pandas, list literals, a category as the beginning of an
    id, ``images/`` cut out of paths wherever it stands, the group from the third field of the
    name, and the alternative images where the category is negation.
    """
    frame = pd.read_csv(f"{root}/croc_hum_metadata.tsv", sep="\t")
    rows: list[dict] = []
    groups: dict[str, dict[str, int]] = {}
    for category in CATEGORIES:
        part = frame[frame["id"].str.startswith(category)]
        if part.empty:
            raise SystemExit(f"no rows of {category}")
        second = "alt_contrast_paths" if category == "negation" else "contrast_paths"
        counts = {"flux": 0, "stable_diffusion": 0, "other": 0}
        for _, row in part.iterrows():
            loaded = {}
            for column in ("prompt_paths", second):
                paths = ast.literal_eval(row[column])
                loaded[column] = [f"{root}/{path}".replace("images/", "") for path in paths]
                for path in loaded[column]:
                    assert Path(path).is_file(), path
                    name = path.split("/")[-1].split("___")[2].lower()
                    group = next(
                        (key for key in ("flux", "stable_diffusion") if key in name), "other"
                    )
                    counts[group] += 1
            rows.append(
                {"id": row["id"], "prompt": row["prompt"], "contrast": row["contrast"], **loaded}
            )
        if not any(row["prompt_paths"] for row in rows) or not any(row.get(second) for row in rows):
            raise SystemExit(f"no images of {category}")
        groups[category] = counts
    return rows, groups


@pytest.mark.django_db
def test_the_published_reader_finds_every_text_and_image(tmp_path):
    world = full_world(pairs=1, seeds=2)
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    export(tmp_path / "out")

    rows, groups = read_as_published(str(tmp_path / "out" / "crochum"))

    assert len(rows) == 8
    assert set(groups) == set(CATEGORIES)
    assert all(found == {"flux": 4, "stable_diffusion": 4, "other": 0} for found in groups.values())
    assert {row["id"] for row in rows} == {f"{category}_1" for category in CATEGORIES}


@pytest.mark.django_db
def test_pairs_with_one_side_only_do_not_stop_the_reader(tmp_path):
    world = full_world(pairs=1, seeds=1)
    world.verified(world.pair("counting_2"))
    world.candidate(world.pair("counting_3"))
    freeze_release(name="croc", campaign=world.campaign, now=NOW)
    export(tmp_path / "out")
    rows, _ = read_as_published(str(tmp_path / "out" / "crochum"))
    assert next(row for row in rows if row["id"] == "counting_2")["contrast_paths"] == []
    assert next(row for row in rows if row["id"] == "counting_3")["prompt_paths"] == []


# Any text but what no text field may hold: NUL, unpaired surrogates, and (for pandas) missing words.
MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip
TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=80)
    | st.sampled_from(["=1+1", 'a "quoted" \t text', "a\rb", "a\r\nb", "\\", "['x']", "👩‍👩‍👧", "שלום", "a\u0301", "\ufeffx"])
).filter(lambda text: text.strip() and text.strip() not in MISSING)  # fmt: skip
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)


@st.composite
def published_rows(draw):
    rows = []
    for number in range(draw(st.integers(1, 5))):
        pair_id = f"{draw(st.sampled_from(['spatial_relation', 'counting', 'negation']))}_{number}"
        paths = {
            side: tuple(
                f"c/{side}/{image_stem(pair_id=pair_id, side=side, generator=draw(NAMES), number=n)}.png"
                for n in range(draw(st.integers(0, 3)))
            )
            for side in SIDES
        }
        rows.append(PublishedRow(pair_id, draw(TEXTS), draw(TEXTS), paths))
    return rows


@pytest.mark.field_case(35)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(published_rows())
def test_any_text_survives_the_table(rows):
    text = table_head() + "".join(table_line(row) for row in rows)
    assert read_table(text) == rows


@pytest.mark.field_case(35)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(published_rows())
def test_the_table_is_what_pandas_writes_and_reads(rows):
    frame = pd.DataFrame(
        {
            "id": [to_published(row.pair_id) for row in rows],
            "prompt": [row.prompt for row in rows],
            "contrast": [row.contrast for row in rows],
            **{f"{side}_paths": [str(list(row.paths[side])) for row in rows] for side in SIDES},
        }
    )
    ours = table_head() + "".join(table_line(row) for row in rows)
    theirs = frame.to_csv(sep="\t", index=False, lineterminator="\n")
    # With Python 3.11's csv module pandas leaves a bare CR unquoted, and cannot read it back.
    if "\r" not in theirs:
        assert ours == theirs
        assert read_table(theirs) == rows
    back = pd.read_csv(io.StringIO(ours, newline=""), sep="\t", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)


@pytest.mark.field_case(35)
def test_a_bare_carriage_return_is_quoted():
    assert quoted("a\rb") == '"a\rb"'
    assert quoted('say "a"') == '"say ""a"""'
    assert quoted("=1+1, [x] \\") == "=1+1, [x] \\"


@pytest.mark.parametrize(
    "name",
    [
        "counting_7___prompt___FLUX_1_dev.png",
        "counting_7___front___FLUX_1_dev___image1.png",
        "counting_7___prompt___FLUX_1_dev___picture1.png",
        "counting_7___prompt___FLUX_1_dev___image1.gif",
        "counting_7___prompt______image1.png",
        "___prompt___x___image1.png",
        "counting_7___prompt___a___b___image1.png",
    ],
)
def test_names_outside_the_rule_are_refused(name):
    with pytest.raises(PublishedLayoutError, match=r"image|ending|side"):
        parse_image_name(f"counting/prompt/{name}")


def test_a_name_is_read_as_it_is_written():
    found = parse_image_name(
        "spacial_relation/prompt/spacial_relation_7___prompt___stable_diffusion_3_5_large___image12.png"
    )
    assert (found.pair_id, found.side) == ("spatial_relation_7", "prompt")
    assert (found.generator, found.number) == ("stable_diffusion_3_5_large", 12)


@given(st.sets(st.text(min_size=1, max_size=30), min_size=1, max_size=8))
def test_generators_never_share_a_field_and_fit_a_path(slugs):
    fields = generator_fields(slugs)
    assert len({field.casefold() for field in fields.values()}) == len(slugs)
    for field in fields.values():
        assert "___" not in field
        assert "/" not in field
        assert field == field.strip("_")
        stem = image_stem(pair_id="counting_7", side="prompt", generator=field, number=3)
        assert parse_image_name(f"{stem}.png").generator == field


def test_published_names_are_kept_verbatim():
    fields = generator_fields({"FLUX_1_dev", "stable_diffusion_3_5_large", "DALL-E.3"})
    assert all(slug == field for slug, field in fields.items())
    assert METADATA_NAME == "croc_hum_metadata.tsv"
