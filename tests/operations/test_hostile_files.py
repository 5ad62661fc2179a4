"""Files that nobody should send, given to everything that reads a file.

Each must end in one clear error that names the place, with the tables and the stored files as
they were, and without a traceback. Each importer gets two kinds: contents that are no file of its
kind at all, and a good file with one wrong value in it.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command

from tests.annotation.world import make_open_campaign
from tests.benchmark.world import small_release
from tests.factories import make_candidate, make_pair, png_bytes

pytestmark = pytest.mark.django_db

NESTED = "[" * 100_000
WHOLE = {
    "nothing": b"",
    "binary": bytes(range(256)) * 64,
    "an image": png_bytes(),
    "NUL": b"id\tfile\x00\tprompt\n\x00\t\x00\t\x00\n",
    "half a character": "id\tprompt\na\tMünchen ü".encode()[:-1],
    "UTF-16": "id\tprompt\na\tb\n".encode("utf-16"),
    "BOM and nothing": b"\xef\xbb\xbf",
    "deep nesting": NESTED.encode(),
    "deep objects": b'{"a":' * 50_000,
    "NaN": b'{"counting": {"7": {"prompt": NaN, "contrast": Infinity}}}',
    "a number": b"12",
    "null": b"null",
    "a list of nothing": b"[null, 1, [], {}]",
    "huge number": b'{"counting": {"7": ' + b"9" * 5_000 + b"}}",
    "same key twice": b'{"counting": {"7": {"prompt": "a"}}, "counting": {"7": {"prompt": "b"}}}',
    "one line of 10 MB": b"x" * 10_000_000,
    "10 MB in quotes": b'"' + b"x" * 10_000_000,
    "tar with a path out": b"",  # filled below
    "lone surrogate": b'{"counting": {"7": {"prompt": "\\ud800", "contrast": "b"}}}',
}


def _tar(name: str, data: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


WHOLE["tar with a path out"] = _tar("../../outside.json")


@dataclass(frozen=True)
class Importer:
    """A command with the name that its file must have, and the rest of its arguments."""

    command: str
    name: str
    folder: bool = False
    """Whether the command is given the folder, not the file."""
    arguments: tuple[str, ...] = ()


IMPORTERS = [
    Importer("load_prompts", "bank.json"),
    Importer("load_prompts", "bank.jsonl"),
    Importer("load_prompts", "bank.csv"),
    Importer("load_prompts", "bank.tsv"),
    Importer("import_images", "manifest.tsv", True, ("--manifest", "{file}")),
    Importer("import_images", "manifest.csv", True, ("--manifest", "{file}")),
    Importer("import_images", "manifest.jsonl", True, ("--manifest", "{file}")),
    Importer("import_images", "counting_7___prompt___m___image1.png", True),
    Importer("import_ratings", "ratings.tsv"),
    Importer("import_ratings", "ratings.csv"),
    Importer("import_crochum", "croc.tar.gz"),
    Importer("import_crochum", "croc_hum_metadata.tsv", True),
    Importer("import_scores", "counting_prompt_img_scores.tsv", True, ("--release", "small")),
    Importer("import_scores", "scores.parquet", False, ("--release", "small")),
    Importer("import_external_results", "results.csv"),
    Importer("import_answers", "answers.json", False, ("--tool", "label-studio")),
    Importer("import_answers", "answers.json", False, ("--tool", "argilla")),
    Importer("import_answers", "annotated_instances.jsonl", False, ("--tool", "potato")),
    Importer("restore", "backup.tar"),
    Importer("evaluate_scores", "counting_prompt_img_scores.tsv", True),
    Importer("evaluate_scores", "counting_prompt_img_scores.tsv.gz", True),
    Importer("evaluate_scores", "part1_scores.tsv", True, ("--mode", "crocsyn")),
    Importer("correlate", "ratings.json"),
    Importer("correlate", "ratings.json", False, ("--scores", "{file}")),
    Importer("verify_release", "manifest.json", True),
]


def names(importer: Importer) -> str:
    return "-".join([importer.command, importer.name, *importer.arguments[1:]]).replace("{", "")


@pytest.fixture
def world():
    pair = make_pair("counting", slug="counting_7")
    make_candidate(pair=pair, side="prompt", data=png_bytes())
    make_open_campaign(pairs=1, category="action")
    return small_release(pairs=2)


def stored() -> dict[str, object]:
    """Rows of every table and all files of the store."""
    counts = {model._meta.label: model._default_manager.count() for model in apps.get_models()}
    media = Path(settings.MEDIA_ROOT)
    return counts | {str(p): p.stat().st_size for p in media.rglob("*") if p.is_file()}


def complaint(importer: Importer, file: Path) -> str:
    """What the command says; fails if it says nothing, or more than an error."""
    arguments = [a.replace("{file}", str(file)) for a in importer.arguments]
    before, out, err = stored(), io.StringIO(), io.StringIO()
    try:
        call_command(
            importer.command,
            str(file.parent if importer.folder else file),
            *arguments,
            stdout=out,
            stderr=err,
        )
    except CommandError as error:
        said = f"{error} {err.getvalue()}"
    except SystemExit:  # verify_release: all is said
        said = out.getvalue() + err.getvalue()
    else:
        pytest.fail(f"taken without a word: {out.getvalue()[:300]}")
    assert stored() == before
    assert "Traceback" not in said
    assert len(said) < 20_000, "the file is not to be printed"
    return said


@pytest.mark.parametrize("importer", IMPORTERS, ids=names)
def test_what_is_no_such_file_is_refused_in_words(importer, world, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file, wrong = folder / importer.name, []
    for kind, data in WHOLE.items():
        if kind == "an image" and importer.name.endswith(".png"):
            continue  # that one is what it says
        file.write_bytes(data)
        try:
            said = complaint(importer, file)
            names_place = (
                importer.name.split(".")[0] in said
                or str(folder) in said
                or re.search(r"line|row|entry|item|counting|pair|key|outside.json", said)
            )
            if not names_place:
                wrong.append(f"{kind}: names no place: {said[:200]!r}")
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # all are told
            wrong.append(f"{kind}: {type(error).__name__}: {str(error)[:250]}")
    assert wrong == []


GOOD = {"id": "counting_8", "category": "counting", "prompt": "one cat", "contrast": "two cats"}
WRONG_PROMPTS = [
    {"prompt": 7}, {"prompt": None}, {"prompt": ["one cat"]}, {"prompt": ""}, {"prompt": "a\x00b"},
    {"prompt": "x" * 1_000_000}, {"prompt": "\x1b[31mred"}, {"id": "../counting_8"},
    {"id": "counting_8/../../x"}, {"id": "counting_8___prompt"}, {"id": ""},
    {"category": "no such"}, {"contrast": "one cat"},
]  # fmt: skip


@pytest.mark.parametrize("change", WRONG_PROMPTS, ids=lambda c: json.dumps(c)[:30])
def test_one_wrong_pair_stops_the_bank(change, tmp_path):
    file = tmp_path / "bank.jsonl"
    file.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "id": "counting_9", **change}))
    said = complaint(Importer("load_prompts", "bank.jsonl"), file)
    assert "line 2" in said or ":2" in said


PATHS = [
    "../out.png", "/etc/passwd", "a/../../out.png", "C:\\out.png", "link.png", "dir", "no.png",
    "a\x00b.png", "=1+1.png", "", ".", "x" * 5_000 + ".png", "broken.png", "text.png",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda p: repr(p)[:20])
def test_a_manifest_leads_nowhere_else(path, world, tmp_path):
    folder = tmp_path / "in"
    (folder / "dir").mkdir(parents=True)
    (tmp_path / "out.png").write_bytes(png_bytes())
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "broken.png").write_bytes(png_bytes()[:40])
    (folder / "text.png").write_text("<svg onload=alert(1)>")
    (folder / "good.png").write_bytes(png_bytes())
    rows = [
        {"file": name, "pair_id": "counting_7", "side": "contrast", "generator": "g", "seed": seed}
        for seed, name in enumerate(["good.png", path])
    ]
    file = tmp_path / "m.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    importer = Importer("import_images", "m.jsonl", False, ("--manifest", str(file)))
    before = stored()
    with pytest.raises(CommandError) as refused:
        call_command(importer.command, str(folder), *importer.arguments, stdout=io.StringIO())
    assert "2" in str(refused.value)
    assert stored() == before


SEEDS = ["NaN", "1e400", "-1", "1.5", "", "x", "9" * 40, "=1+1"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_a_whole_number(seed, world, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.png").write_bytes(png_bytes())
    file = folder / "m.tsv"
    file.write_text(
        f"file\tpair_id\tside\tgenerator\tseed\na.png\tcounting_7\tcontrast\tg\t{seed}\n"
    )
    said = complaint(Importer("import_images", "m.tsv", True, ("--manifest", "{file}")), file)
    assert "seed" in said


RATINGS = ["NaN", "inf", "-inf", "1e999", "", "four", "4,5", "=4+1", "9" * 400]


@pytest.mark.parametrize("rating", RATINGS, ids=lambda r: r[:8])
def test_a_rating_is_a_finite_number(rating, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    make_pair("counting", slug="counting_7")
    name = "counting_7___prompt___m___image1.png"
    (folder / name).write_bytes(png_bytes())
    call_command("import_images", str(folder), stdout=io.StringIO())
    file = tmp_path / "r.tsv"
    file.write_text(f"file\trater\trating\n{name}\ta\t5\n{name}\tb\t{rating}\n")
    said = complaint(Importer("import_ratings", "r.tsv"), file)
    assert "line 3" in said or ":3" in said


MEMBERS = ["../x.png", "/etc/x.png", "a/../../x.png", "croc_hum/../../x"]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_an_archive_with_links_or_devices_is_refused(kind, tmp_path):
    file = tmp_path / "c.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        info = tarfile.TarInfo("croc_hum/croc_hum_metadata.tsv")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    assert "croc_hum_metadata" in complaint(Importer("import_crochum", "c.tar.gz"), file)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("command", ["import_crochum", "restore"])
def test_an_archive_that_leads_out_writes_nothing_outside(member, command, tmp_path):
    import gzip

    folder = tmp_path / "deep" / "in"
    folder.mkdir(parents=True)
    data = _tar(member)
    file = folder / ("c.tar.gz" if command == "import_crochum" else "c.tar")
    file.write_bytes(gzip.compress(data) if command == "import_crochum" else data)
    complaint(Importer(command, file.name), file)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [file.name]


MISSHAPEN = {
    "label-studio": [
        {"annotations": 5, "data": {"croc_key": "k"}},
        {"annotations": [5], "data": {"croc_key": "k"}},
        {"annotations": [{"result": 7}], "data": {"croc_key": "k"}},
        {"annotations": [], "data": 3},
        {"verdict": "accept", "id": 1, "annotator": []},
    ],
    "argilla": [
        {"id": "k", "responses": [1]},
        {"id": "k", "responses": {"verdict": 3}},
        {"id": 7, "responses": {"verdict": [{"value": "accept"}]}},
        {"id": "k", "responses": {"verdict": [{"value": {"a": 1}, "user_id": "u"}]}},
    ],
    "potato": [
        {"id": "k", "label_annotations": 5},
        {"id": "k", "label_annotations": {"verdict": [1]}},
        {"id": "k", "label_annotations": {"verdict": {"accept": "1", "reject": "1"}}},
    ],
}


@pytest.mark.parametrize(
    ("tool", "entry"), [(tool, entry) for tool, rows in MISSHAPEN.items() for entry in rows]
)
def test_an_answer_of_another_shape_is_refused_by_its_place(tool, entry, world, tmp_path):
    file = tmp_path / ("annotated_instances.jsonl" if tool == "potato" else "answers.json")
    file.write_text(json.dumps(entry) if tool == "potato" else json.dumps([entry]))
    said = complaint(Importer("import_answers", file.name, False, ("--tool", tool)), file)
    assert re.search(r"task 1|row 1", said)
