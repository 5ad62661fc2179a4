"""The bytes of images: read, checked against their hash, re-encoded on request; several at once.

Results come in the order of the rows whatever the number of threads, and never more than a
few images are held at a time.
"""

from __future__ import annotations

import hashlib
import io
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from PIL import Image

from croc_annotate.lib.imagefiles import rgb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from croc_annotate.releases.export.options import ExportOptions
    from croc_annotate.releases.records import ImageRecord

_BATCH = 16
# Images read ahead may take this much, so that threads do not idle while a row group is written.
_AHEAD_BYTES = 8 * 1024 * 1024
Item = TypeVar("Item")
Result = TypeVar("Result")

_SUFFIX = {"png": ".png", "jpeg": ".jpg", "webp": ".webp"}
_OF_ORIGINAL = {".png": "png", ".bmp": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}


class ChangedImageError(RuntimeError):
    """A stored image is missing or is not the one that people judged."""


@dataclass(frozen=True, slots=True)
class Payload:
    """An image as it goes into the export. ``sha256`` is of ``data``."""

    record: ImageRecord
    data: bytes
    sha256: str
    suffix: str


class ImageLoader:
    """Reads images through ``read`` (storage name → bytes) as the options want them."""

    def __init__(
        self, read: Callable[[str], bytes], options: ExportOptions, *, workers: int
    ) -> None:
        self._read, self._options = read, options
        self.workers = max(1, workers)

    def load(self, record: ImageRecord) -> Payload:
        """One image; raises ChangedImageError."""
        try:
            data = self._read(record.storage_name)
        except FileNotFoundError as error:
            raise ChangedImageError(f"{record.id}: the image is not in the storage") from error
        digest = hashlib.sha256(data).hexdigest()
        if digest != record.sha256:
            raise ChangedImageError(f"{record.id}: the stored image is not the one that was judged")
        if self._options.reencodes:
            data = reencoded(data, record, self._options)
            digest = hashlib.sha256(data).hexdigest()
        return Payload(record, data, digest, exported_suffix(record, self._options))

    def each(
        self, records: Iterable[ImageRecord], then: Callable[[Payload], Result]
    ) -> Iterator[Result]:
        """``then`` of each image, worked out in threads, yielded in order.

        A few images a task: handing one over costs as much as copying a small file.
        """

        def several(batch: list[ImageRecord]) -> list[Result]:
            return [then(self.load(record)) for record in batch]

        for found in ordered_map(several, _batches(records), workers=self.workers):
            yield from found

    def payloads(self, records: Iterable[ImageRecord]) -> Iterator[Payload]:
        """The images in order."""
        return ordered_map(self.load, records, workers=self.workers, weigh=_largest)


def _largest(record: ImageRecord) -> int:
    """Bytes that an image hardly exceeds: its pixels without any compression."""
    return 3 * record.width * record.height


def _batches(records: Iterable[ImageRecord]) -> Iterator[list[ImageRecord]]:
    stream = iter(records)
    while batch := list(islice(stream, _BATCH)):
        yield batch


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int,
    weigh: Callable[[Item], int] = lambda item: _AHEAD_BYTES,
) -> Iterator[Result]:
    """``map`` in threads that looks two items a thread ahead, or as far as the weights allow."""
    if workers == 1:
        yield from map(function, items)
        return
    waiting: deque[tuple[Future[Result], int]] = deque()
    held = 0
    with ThreadPoolExecutor(workers, thread_name_prefix="export") as pool:
        try:
            for item in items:
                weight = weigh(item)
                waiting.append((pool.submit(function, item), weight))
                held += weight
                while len(waiting) >= 2 * workers and held >= _AHEAD_BYTES:
                    future, weight = waiting.popleft()
                    held -= weight
                    yield future.result()
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()


def exported_format(record: ImageRecord, options: ExportOptions) -> str:
    """The codec of an exported image."""
    if options.image_format != "original":
        return options.image_format
    return _OF_ORIGINAL.get(record.suffix, "png")


def exported_suffix(record: ImageRecord, options: ExportOptions) -> str:
    """The ending of an exported image's name."""
    if not options.reencodes:
        return record.suffix
    return _SUFFIX[exported_format(record, options)]


def exported_size(record: ImageRecord, options: ExportOptions) -> tuple[int, int]:
    """Width and height of an exported image."""
    longest = max(record.width, record.height)
    if options.max_side is None or longest <= options.max_side:
        return record.width, record.height
    scale = options.max_side / longest
    return max(1, round(record.width * scale)), max(1, round(record.height * scale))


def reencoded(data: bytes, record: ImageRecord, options: ExportOptions) -> bytes:
    """The image as people saw it (8-bit sRGB, upright), smaller or in another codec."""
    picture = rgb(data)
    size = exported_size(record, options)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    out = io.BytesIO()
    codec = exported_format(record, options)
    if codec == "png":
        picture.save(out, "PNG", compress_level=6)
    elif codec == "jpeg":
        picture.save(out, "JPEG", quality=options.quality, subsampling=0)
    else:
        picture.save(out, "WEBP", quality=options.quality, method=4, exact=True)
    return out.getvalue()
