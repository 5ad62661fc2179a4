from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from croc_annotate.annotation.models import Judgement
from croc_annotate.releases.handover.tools import TOOLS, AnswerFileError, task_file
from tests.releases.world import make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    world = make_world()
    pair = world.pair("counting_1", prompt='two "red" cups, [x] 漢', contrast="three cups")
    for side in ("prompt", "contrast"):
        world.judge(world.candidate(pair, side), ())
    done = world.candidate(pair)
    world.judge(done, ("accept", "accept", "accept"))
    return world


def tasks_of(folder, tool: str) -> list[dict]:
    text = (folder / task_file(TOOLS[tool])).read_text()
    return (
        json.loads(text) if tool == "label-studio" else [json.loads(x) for x in text.splitlines()]
    )


@pytest.mark.parametrize("tool", TOOLS)
def test_open_work_is_handed_over_without_saying_whose_images_they_are(world, tmp_path, tool):
    call_command("export_tasks", "--tool", tool, "--out", str(tmp_path / "out"))
    tasks = tasks_of(tmp_path / "out", tool)
    assert len(tasks) == 2
    assert len(list((tmp_path / "out" / "images").iterdir())) == 2
    everything = b"".join(
        path.read_bytes() + str(path.relative_to(tmp_path)).encode()
        for path in (tmp_path / "out").rglob("*") if path.is_file()
    )  # fmt: skip
    for secret in (b"FLUX", b"contrast", b"person1"):
        assert secret not in everything
    assert "两" not in everything.decode("latin-1")
    assert any('two "red" cups, [x] 漢' in json.dumps(task, ensure_ascii=False).replace('\\"', '"')
               for task in tasks)  # fmt: skip
    with pytest.raises(CommandError, match="--force"):
        call_command("export_tasks", "--tool", tool, "--out", str(tmp_path / "out"))


def answered(tool: str, keys: list[str], verdicts: dict[str, tuple[str, str]], folder):
    """Both people's answers in the tool's own form."""
    if tool == "label-studio":
        found = [
            {
                "id": n, "data": {"croc_key": key, "image": "x", "text": "t"},
                "annotations": [
                    {"completed_by": person, "was_cancelled": False, "lead_time": 2.0, "result": [
                        {"from_name": "verdict", "to_name": "image", "type": "choices",
                         "value": {"choices": [verdicts[key][person - 1]]}}]}
                    for person in (1, 2)
                ] + [{"completed_by": 3, "was_cancelled": True, "result": []}],
            }
            for n, key in enumerate(keys)
        ]  # fmt: skip
        path = folder / "export.json"
        path.write_text(json.dumps(found))
        return path
    if tool == "argilla":
        found = [
            {"id": key, "fields": {}, "status": "completed", "responses": {"verdict": [
                {"value": verdict, "user_id": f"u{n}"} for n, verdict in enumerate(verdicts[key])
            ]}}
            for key in keys
        ]  # fmt: skip
        path = folder / "records.json"
        path.write_text(json.dumps(found))
        return path
    for person in (0, 1):
        place = folder / "annotation_output" / f"user{person}"
        place.mkdir(parents=True)
        (place / "annotated_instances.jsonl").write_text("".join(
            json.dumps({"id": key, "label_annotations": {"verdict": {verdicts[key][person]: "true"}}}) + "\n"
            for key in keys
        ))  # fmt: skip
    return folder / "annotation_output"


@pytest.mark.parametrize("tool", TOOLS)
def test_answers_come_back_as_judgements_once(world, tmp_path, tool, capsys):
    keys = [row.key for row in world.candidates[:2]]
    verdicts = {keys[0]: ("accept", "unsure"), keys[1]: ("reject", "reject")}
    path = answered(tool, keys, verdicts, tmp_path)
    before = Judgement.objects.count()

    for _ in range(2):
        call_command("import_answers", str(path), "--tool", tool, "--json")

    assert Judgement.objects.count() == before + 4
    for row, key in zip(world.candidates[:2], keys, strict=True):
        found = Judgement.objects.filter(item__candidate=row).values_list("verdict", flat=True)
        assert sorted(found) == sorted(verdicts[key])
    names = set(Judgement.objects.filter(item__candidate=world.candidates[0]).values_list(
        "annotator__username", flat=True))  # fmt: skip
    assert len(names) == 2
    assert not any("user" in name for name in names)


def test_label_studios_flat_export_is_read_too(world, tmp_path):
    path = tmp_path / "min.json"
    path.write_text(
        json.dumps([{"croc_key": world.candidates[0].key, "verdict": "accept", "annotator": 7}])
    )
    call_command("import_answers", str(path), "--tool", "label-studio")
    assert Judgement.objects.filter(item__candidate=world.candidates[0]).count() == 1


@pytest.mark.parametrize(
    ("tool", "text", "words"),
    [
        ("label-studio", "not json", "not JSON"),
        ("label-studio", "[1]", "something else"),
        ("label-studio", '[{"annotations": [], "data": {}}]', "export_tasks"),
        ("label-studio", '[{"croc_key": "k", "verdict": "maybe", "annotator": 1}]', "none of"),
        ("label-studio", '[{"croc_key": "k", "verdict": "accept", "annotator": 1}]', "no image"),
        ("argilla", '[{"id": "k", "responses": {"verdict": [{"value": "accept"}]}}]', "whose"),
        ("potato", '{"id": "k", "user_id": "u", "label_annotations": {"verdict": {"accept": true, "reject": true}}}', "several"),
    ],
    ids=["text", "list", "no key", "verdict", "unknown", "nobody", "two verdicts"],
)  # fmt: skip
def test_wrong_answers_store_nothing(world, tmp_path, tool, text, words):
    path = tmp_path / "file.json"
    path.write_text(text)
    before = Judgement.objects.count()
    with pytest.raises(CommandError, match=words):
        call_command("import_answers", str(path), "--tool", tool)
    assert Judgement.objects.count() == before


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(AnswerFileError, match="no file"):
        TOOLS["potato"].read_answers(tmp_path / "nothing.jsonl")
