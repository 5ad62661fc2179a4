"""Label Studio, Argilla and Potato: their task files written, their answer files read. No Django.

An answer names its image by the opaque key that the task carried, so that the other tool learns
neither generator nor side.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from croc_annotate.lib.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

QUESTION = "Does the picture show all that the text says?"
VERDICTS = ("accept", "reject", "unsure")
_MAX_FILE = 1024 * 1024 * 1024


class AnswerFileError(ValueError):
    """A file of answers that cannot be used; the message names the place and the reason."""


@dataclass(frozen=True, slots=True)
class Task:
    """An image and the text that it is judged against. ``image`` is its path in the folder."""

    key: str
    text: str
    category: str
    image: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One person's verdict on one image; ``place`` says where it stands in the file."""

    key: str
    rater: str
    verdict: str
    place: int


class Tool(Protocol):
    """An annotation tool that a team already uses."""

    name: str
    files: dict[str, str]

    def write_tasks(self, tasks: Iterable[Task], stream: BinaryIO) -> None:
        """Write the tasks as the tool imports them."""

    def read_answers(self, path: Path) -> list[Answer]:
        """Read what the tool exports; raises AnswerFileError."""


class LabelStudio:
    """JSON task list; answers as JSON or JSON-MIN. Images through its local file storage."""

    name = "label-studio"
    files = {
        "labeling.xml": (
            "<View>\n"
            '  <Header value="$text"/>\n'
            '  <Image name="image" value="$image"/>\n'
            '  <Choices name="verdict" toName="image" choice="single" required="true">\n'
            + "".join(f'    <Choice value="{verdict}"/>\n' for verdict in VERDICTS)
            + "  </Choices>\n</View>\n"
        )
    }

    def write_tasks(self, tasks: Iterable[Task], stream: BinaryIO) -> None:
        """``tasks.json``: one list."""
        comma = b"[\n"
        for task in tasks:
            data = {
                "image": f"/data/local-files/?d={task.image}", "text": task.text,
                "category": task.category, "croc_key": task.key,
            }  # fmt: skip
            stream.write(comma + _json({"data": data}))
            comma = b",\n"
        stream.write(b"\n]\n" if comma != b"[\n" else b"[]\n")

    def read_answers(self, path: Path) -> list[Answer]:
        """Tasks with annotations, or the flat rows of JSON-MIN; skipped tasks have no answer."""
        found = []
        for place, task in enumerate(_list(path), start=1):
            with _shape(place):
                if "annotations" in task:
                    found += list(self._annotations(task, place))
                elif "verdict" in task:
                    key = _text(task, "croc_key", place)
                    found.append(
                        Answer(key, _rater(task.get("annotator")), str(task["verdict"]), place)
                    )
        return _checked(found, path)

    def _annotations(self, task: dict[str, Any], place: int) -> Iterator[Answer]:
        key = _text(task.get("data") or {}, "croc_key", place)
        for annotation in task["annotations"]:
            if annotation.get("was_cancelled"):
                continue
            choices = [
                choice
                for result in annotation.get("result", [])
                if result.get("from_name") == "verdict"
                for choice in (result.get("value") or {}).get("choices", [])
            ]
            if len(choices) != 1:
                raise AnswerFileError(f"task {place}: {len(choices)} verdicts in one annotation")
            yield Answer(key, _rater(annotation.get("completed_by")), str(choices[0]), place)


class Argilla:
    """Records with an image and a text field and one label question."""

    name = "argilla"
    files = {
        "settings.json": json.dumps(
            {
                "guidelines": QUESTION,
                "fields": [
                    {
                        "name": "image",
                        "title": "Image",
                        "required": True,
                        "settings": {"type": "image"},
                    },
                    {
                        "name": "text",
                        "title": "Text",
                        "required": True,
                        "settings": {"type": "text"},
                    },
                ],
                "questions": [
                    {
                        "name": "verdict",
                        "title": QUESTION,
                        "required": True,
                        "settings": {
                            "type": "label_selection",
                            "options": [
                                {"value": verdict, "text": verdict} for verdict in VERDICTS
                            ],
                        },
                    }
                ],
            },
            indent=1,
        )
        + "\n"
    }

    def write_tasks(self, tasks: Iterable[Task], stream: BinaryIO) -> None:
        """``tasks.jsonl``: one record a line."""
        for task in tasks:
            record = {
                "id": task.key, "fields": {"image": task.image, "text": task.text},
                "metadata": {"category": task.category}, "suggestions": {}, "responses": {},
            }  # fmt: skip
            stream.write(_json(record) + b"\n")

    def read_answers(self, path: Path) -> list[Answer]:
        """Records as ``records.to_json`` writes them; drafts and discarded responses do not count."""
        found = []
        for place, record in enumerate(_list(path), start=1):
            with _shape(place):
                responses = (record.get("responses") or {}).get("verdict") or []
                for response in responses:
                    if response.get("status", "submitted") == "submitted":
                        key = _text(record, "id", place)
                        rater = _rater(response.get("user_id"))
                        found.append(Answer(key, rater, str(response.get("value")), place))
        return _checked(found, path)


class Potato:
    """JSON lines with an ``id``; answers from ``annotated_instances.jsonl`` of each person."""

    name = "potato"
    files = {
        "config.yaml": (
            "annotation_task_name: Verify images\n"
            "data_files: [tasks.jsonl]\n"
            "item_properties: {id_key: id, text_key: text}\n"
            "output_annotation_dir: annotation_output/\n"
            "output_annotation_format: jsonl\n"
            "annotation_schemes:\n"
            "  - annotation_type: radio\n"
            "    name: verdict\n"
            f"    description: {QUESTION}\n"
            f"    labels: [{', '.join(VERDICTS)}]\n"
        )
    }

    def write_tasks(self, tasks: Iterable[Task], stream: BinaryIO) -> None:
        """``tasks.jsonl``: one item a line, the image as its address."""
        for task in tasks:
            item = {
                "id": task.key, "text": task.text, "image": task.image, "category": task.category,
            }  # fmt: skip
            stream.write(_json(item) + b"\n")

    def read_answers(self, path: Path) -> list[Answer]:
        """One file, or the output folder with a folder for each person."""
        files = sorted(path.glob("*/annotated_instances.jsonl")) if path.is_dir() else [path]
        if not files:
            raise AnswerFileError(f"{path.name}: holds no annotated_instances.jsonl")
        found = []
        for file in files:
            for place, row in enumerate(_list(file), start=1):
                with _shape(place):
                    chosen = _chosen((row.get("label_annotations") or {}).get("verdict") or {})
                if not chosen:
                    continue
                if len(chosen) > 1:
                    raise AnswerFileError(f"{file.name}, row {place}: several verdicts")
                key = str(row.get("instance_id") or row.get("id") or "")
                rater = _rater(row.get("user_id") or file.parent.name)
                found.append(Answer(key, rater, chosen[0], place))
        return _checked(found, path)


def _chosen(values: dict[str, Any]) -> list[str]:
    """The labels that are set: ``true``, ``"true"``, or the label's own number or name."""
    unset = (None, False, "", "false", "False", 0, "0")
    return [label for label, value in values.items() if value not in unset]


TOOLS: dict[str, Tool] = {"label-studio": LabelStudio(), "argilla": Argilla(), "potato": Potato()}


def task_file(tool: Tool) -> str:
    """What the tool's task file is called."""
    return "tasks.json" if tool.name == "label-studio" else "tasks.jsonl"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


@contextmanager
def _shape(place: int) -> Iterator[None]:
    """What the tools never write, read as what they write, is a fault of the file."""
    try:
        yield
    except (TypeError, AttributeError, KeyError) as error:
        raise AnswerFileError(f"task {place}: is not shaped as the tool writes it") from error


# One of these names every task that a tool gives back.
_NAMES = {"id", "instance_id", "data", "croc_key"}


def _list(path: Path) -> list[dict[str, Any]]:
    """A JSON list or JSON lines of objects."""
    if not path.is_file() or path.stat().st_size > _MAX_FILE:
        raise AnswerFileError(f"{path}: is no file, or larger than {_MAX_FILE} bytes")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if text.lstrip().startswith("["):
            values = parse_json(text)
        else:
            values = [parse_json(line) for line in text.splitlines() if line.strip()]
    except (UnicodeDecodeError, ValueError) as error:
        raise AnswerFileError(f"{path.name}: not JSON ({error})") from error
    if not values:
        raise AnswerFileError(f"{path.name}: holds no task")
    if not all(isinstance(value, dict) and _NAMES & set(value) for value in values):
        raise AnswerFileError(f"{path.name}: holds something else than tasks")
    return list(values)


def _text(values: dict[str, Any], name: str, place: int) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise AnswerFileError(f"task {place}: has no {name}; was it made by export_tasks?")
    return value


def _rater(value: Any) -> str:
    """A person's name there: an id, or an object with one."""
    if isinstance(value, dict):
        value = value.get("id") or value.get("email")
    if value in (None, ""):
        raise AnswerFileError("an answer does not say whose it is")
    return str(value)


def _checked(answers: list[Answer], path: Path) -> list[Answer]:
    seen: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        if answer.verdict not in VERDICTS:
            raise AnswerFileError(
                f"{path.name}, task {answer.place}: “{answer.verdict}” is none of"
                f" {', '.join(VERDICTS)}"
            )
        # A person may have annotated a task again: the last one stands.
        seen[answer.key, answer.rater] = answer
    return list(seen.values())
