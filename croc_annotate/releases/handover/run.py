"""Tasks out to another tool, its answers back in as judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.annotation.imports import RatingReport, import_ratings
from croc_annotate.annotation.models import TextRole
from croc_annotate.annotation.rating_files import RatingRow
from croc_annotate.candidates.storage import read_file
from croc_annotate.lib.atomic import atomic_folder
from croc_annotate.releases.handover.tools import TOOLS, Task, task_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from croc_annotate.annotation.models import Campaign

# The importer speaks in ratings; a verdict is the clearest rating of its kind.
_RATING = {"accept": 5.0, "unsure": 3.0, "reject": 1.0}


def export_tasks(
    *,
    campaign: Campaign,
    tool: str,
    target: Path,
    force: bool = False,
    tick: Callable[[], object] = lambda: None,
) -> int:
    """Write the campaign's unfinished images as tasks, with their stripped copies; return how many.

    Raises TargetExistsError.
    """
    chosen = TOOLS[tool]
    count = 0
    with atomic_folder(target, force=force) as folder:
        (folder / "images").mkdir()

        def tasks() -> Iterator[Task]:
            nonlocal count
            for task, display in _tasks(campaign):
                (folder / task.image).write_bytes(read_file(display))
                count += 1
                tick()
                yield task

        with (folder / task_file(chosen)).open("wb") as stream:
            chosen.write_tasks(tasks(), stream)
        for name, text in chosen.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return count


def import_answers(*, campaign: Campaign, tool: str, source: Path, now: datetime) -> RatingReport:
    """Store another tool's answers as judgements of ``campaign``; a second time changes nothing.

    Raises AnswerFileError and RatingFileError; nothing is stored when anything is wrong.
    """
    answers = TOOLS[tool].read_answers(source)
    rows = [
        RatingRow(answer.place, answer.key, f"{tool}:{answer.rater}", _RATING[answer.verdict])
        for answer in answers
    ]
    return import_ratings(
        rows=rows, accept_from=4.0, reject_to=2.0, campaign=campaign, now=now, named_by="key"
    )


def _tasks(campaign: Campaign) -> Iterator[tuple[Task, str]]:
    items = (
        campaign.items.incomplete()
        .filter(text_role=TextRole.OWN)
        .select_related("candidate__pair")
        .order_by("position")
    )
    for item in items.iterator(chunk_size=1_000):
        candidate = item.candidate
        image = f"images/{candidate.key}.jpg"
        yield (
            Task(candidate.key, candidate.own_text, candidate.pair.category_id, image),
            candidate.display,
        )
