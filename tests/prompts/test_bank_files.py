"""Reading banks: every layout, and every fault named with its place."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croc_annotate.prompts.bank import BankError, parse_bank
from croc_annotate.prompts.rules import PairRow

RESEARCH = {
    "counting": {"7": {"prompt": "three apples", "contrast": "four apples"}},
    "negation": {
        "1": {"prompt": "with a vase", "contrast": "without a vase", "alt_contrast": "empty"}
    },
}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def fault(path: Path) -> str:
    with pytest.raises(BankError) as caught:
        parse_bank(path)
    return str(caught.value)


def test_research_json_is_read(tmp_path: Path) -> None:
    rows = parse_bank(write(tmp_path, "bank.json", json.dumps(RESEARCH)))
    assert [row.slug for row in rows] == ["counting_7", "negation_1"]
    assert rows[1].alt_contrast == "empty"
    assert rows[0].place == "counting → 7"


def test_the_published_spelling_is_read_as_ours(tmp_path: Path) -> None:
    entry = {"prompt": "a left of b", "contrast": "a right of b"}
    text = json.dumps({"spacial_relation": {"3": entry}})
    (row,) = parse_bank(write(tmp_path, "bank.json", text))
    assert (row.slug, row.category) == ("spatial_relation_3", "spatial_relation")


def test_json_lines_csv_and_tsv_say_the_same(tmp_path: Path) -> None:
    entry = {
        "id": "shapes_1",
        "category": "shapes",
        "prompt": 'a "round", red\u00a0sign',
        "contrast": "=a square sign",
        "alt_contrast": "",
        "property": "outline",
        "topic": "street",
        "entity": "sign",
    }
    paths = [write(tmp_path, "a.jsonl", json.dumps(entry) + "\n\n")]
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with (tmp_path / name).open("w", newline="", encoding="utf-8-sig") as out:
            table = csv.DictWriter(out, [*entry, "note"], delimiter=delimiter)
            table.writeheader()
            table.writerow({**entry, "note": "ignored"})
        paths.append(tmp_path / name)
    rows = [parse_bank(path)[0] for path in paths]
    assert {(row.slug, row.prompt, row.contrast, row.property, row.entity) for row in rows} == {
        ("shapes_1", 'a "round", red\u00a0sign', "=a square sign", "outline", "sign")
    }


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", "x", "the ending “.txt” is not a bank's"),
        ("a.json", "{", "line 1, column 2: is not JSON"),
        ("a.json", "[]", "top level: must be an object, is list"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"counting": {"1": 3}}', "counting → 1: must be an object"),
        ("a.json", "{}", "holds no pairs"),
        (
            "a.json",
            '{"counting": {"1": {"prompt": "a", "contrast": "b"}, "1": {}}}',
            "counting: has the key “1” twice",
        ),
        (
            "a.json",
            '{"counting": {"1": {"prompt": "a", "prompt": "c", "contrast": "b"}}}',
            "counting → 1: has the key “prompt” twice",
        ),
        ("a.json", '{"counting": {"1": {"prompt": "a"}}}', "counting → 1: contrast: is missing"),
        (
            "a.json",
            '{"counting": {"1": {"prompt": 3, "contrast": "b"}}}',
            "counting → 1: prompt: must be text, is int",
        ),
        ("a.jsonl", '{"id": "counting_1"}\n{', "line 1: category: is missing"),
        ("a.jsonl", '{"id": 1, "category": "counting"}', "line 1: id: must be text"),
        ("a.csv", "id,category,prompt\n", "line 1: has no column “contrast”"),
        (
            "a.csv",
            "id,category,prompt,contrast,prompt\n",
            "line 1: has the column “prompt” twice",
        ),
        (
            "a.csv",
            "id,category,prompt,contrast\ncounting_1,counting,a\n",
            "line 2: has 3 cells; the header has 4",
        ),
        (
            "a.csv",
            'id,category,prompt,contrast\ncounting_1,counting,"a,b\n',
            "is not a table",
        ),
    ],
)
def test_a_wrong_file_names_the_place(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert expected in fault(write(tmp_path, name, text))


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,category,prompt,contrast\ncounting_1,counting,caf\xe9,b\n")
    assert "line 2: is not UTF-8 text" in fault(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "cannot be read" in fault(tmp_path / "nothing.json")


def test_all_faults_of_a_file_are_listed_but_not_without_end(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"counting_{i}", "category": "counting", "prompt": "a", "contrast": "A"})
        for i in range(30)
    ]
    text = fault(write(tmp_path, "a.jsonl", "\n".join(lines)))
    assert "line 1: contrast: says the same" in text
    assert "line 20: " in text
    assert "… and 10 more" in text


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=40
).map(lambda text: f"a{text}b")


@given(prompt=texts, contrast=texts.map(lambda text: f"other {text}"))
@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_text_survives_every_layout(tmp_path: Path, prompt: str, contrast: str) -> None:
    entry = {"id": "action_1", "category": "action", "prompt": prompt, "contrast": contrast}
    nested = {"action": {"1": {"prompt": prompt, "contrast": contrast}}}
    paths = [
        write(tmp_path, "a.json", json.dumps(nested, ensure_ascii=False)),
        write(tmp_path, "a.jsonl", json.dumps(entry, ensure_ascii=False)),
    ]
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as out:
            table = csv.writer(out, delimiter=delimiter)
            table.writerows([list(entry), list(entry.values())])
        paths.append(tmp_path / name)
    for path in paths:
        (row,) = parse_bank(path)
        assert isinstance(row, PairRow)
        assert (row.prompt, row.contrast) == (prompt, contrast)
