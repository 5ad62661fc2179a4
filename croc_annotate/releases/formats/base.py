"""What a format is, and what it gets to write with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.export.payloads import ImageLoader
    from croc_annotate.releases.export.workdir import WorkFolder
    from croc_annotate.releases.records import (
        AnnotationRecord,
        ImageRecord,
        PairRecord,
        ReleaseFacts,
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A release as a format sees it: rows that can be walked several times, and their images."""

    facts: ReleaseFacts
    pairs: Sequence[PairRecord]
    images: Callable[[], Iterator[ImageRecord]]
    annotations: Callable[[], Iterator[AnnotationRecord]]
    loader: ImageLoader
    options: ExportOptions
    split_of: Callable[[str], str]
    splits: tuple[str, ...]
    tick: Callable[[], object]

    def images_of(self, split: str) -> Iterator[ImageRecord]:
        """The images of one split, in order."""
        return (record for record in self.images() if self.split_of(record.pair.slug) == split)


class Format(Protocol):
    """One layout of a release. Writes in a fixed order and only through ``out``."""

    name: str
    summary: str

    def write(self, job: Job, out: WorkFolder) -> None:
        """Write everything under ``<name>/``; files that ``out`` has already are kept."""
