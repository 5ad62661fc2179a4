"""The files of an export, each read once: hashed, its images decoded and its texts compared.

Only a Parquet shard is read twice, at once after it was hashed: its columns do not stand in the
order of its bytes.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections import Counter
from typing import IO, TYPE_CHECKING, Any

from croc_annotate.lib.imagefiles import BadImageError, inspect_image
from croc_annotate.releases.checks import Check
from croc_annotate.releases.export.workdir import file_sha256
from croc_annotate.releases.published import METADATA_NAME, PublishedLayoutError, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
_CHUNK = 1024 * 1024
_ARCHIVE = "crochum.tar.gz"
_ROWS = 16
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, tarfile.TarError)
Row = tuple[str, str, str, int]


class Walk:
    """The checks that need the content of the files."""

    def __init__(self, folder: Path, entries: Sequence[dict[str, Any]], *, decode: bool) -> None:
        self._folder, self._decodes = folder, decode
        self._listed: Mapping[str, str] = {entry["path"]: entry["sha256"] for entry in entries}
        self.files = Check("every listed file is there with its size and hash")
        self.images = Check("every image can be decoded")
        self.counted = Check("every format holds the verified images")
        self.texts = Check("the texts of a pair are the same in every format")
        self._known: dict[str, tuple[str, str]] = {}
        self._found: Counter[str] = Counter()

    def look_at(self, entry: dict[str, Any]) -> None:
        """One listed file."""
        name = entry["path"]
        path = self._folder / name
        self.files.looked_at += 1
        if not path.is_file() or path.is_symlink():
            self.files.fault(f"{name}: is missing")
            return
        size = path.stat().st_size
        try:
            digest = self._read(path, name)
        except OSError as error:
            self.files.fault(f"{name}: cannot be read ({error})")
            return
        if size != entry["size"]:
            self.files.fault(f"{name}: {size} bytes, listed are {entry['size']}")
        elif digest != entry["sha256"]:
            self.files.fault(f"{name}: another content than listed")

    def count(self, formats: Sequence[str], wanted: int) -> None:
        """When all files were looked at: does every format hold ``wanted`` images?"""
        tables = {"crochum": _crochum_rows, "imagefolder": _imagefolder_rows}
        for name in formats:
            if name in tables:
                try:
                    for row in tables[name](self._folder):
                        self._row(name, row)
                except (*_BROKEN, PublishedLayoutError) as error:
                    self.counted.fault(f"{name}: cannot be read ({error})")
            if name in (*tables, "parquet", "webdataset"):
                self.counted.looked_at += 1
                if self._found[name] != wanted:
                    self.counted.fault(f"{name}: {self._found[name]} images, {wanted} are verified")

    def _read(self, path: Path, name: str) -> str:
        """Look into a file; returns its SHA-256."""
        if name.lower().endswith(_IMAGES):
            data = path.read_bytes()
            return self._decode(name, data) or hashlib.sha256(data).hexdigest()
        if name.startswith("webdataset/") and name.endswith(".tar"):
            return self._tar(path, name, "r|", self._samples)
        if name == _ARCHIVE:
            return self._tar(path, name, "r|gz", self._copies)
        digest = file_sha256(path)
        if name.startswith(("parquet/data/", "sft/data/")) and name.endswith(".parquet"):
            self._shard(path, name)
        return digest

    def _decode(self, name: str, data: bytes) -> str:
        """Decode an image if that is wanted; returns its SHA-256, or "" where it is none."""
        if not self._decodes:
            return ""
        self.images.looked_at += 1
        try:
            return inspect_image(data).sha256
        except BadImageError as error:
            self.images.fault(f"{name}: {error}")
            return ""

    def _row(self, name: str, row: Row) -> None:
        pair_id, prompt, contrast, images = row
        self._found[name] += images
        self.texts.looked_at += 1
        if self._known.setdefault(pair_id, (prompt, contrast)) != (prompt, contrast):
            self.texts.fault(f"{name}: {pair_id} has other texts than another format")

    def _tar(
        self, path: Path, name: str, mode: str, look: Callable[[str, tarfile.TarFile], None]
    ) -> str:
        with path.open("rb") as stream:
            hashed = _Hashed(stream)
            try:
                with tarfile.open(fileobj=hashed, mode=mode, bufsize=_CHUNK) as tar:  # type: ignore[call-overload]
                    look(name, tar)
            except _BROKEN as error:
                self.counted.fault(f"{name}: cannot be read ({error})")
            while hashed.read(_CHUNK):
                pass
        return hashed.digest.hexdigest()

    def _samples(self, name: str, tar: tarfile.TarFile) -> None:
        """The images of a WebDataset shard and their rows."""
        for member, content in _members(tar):
            if member.endswith(".json"):
                row = json.loads(content.read())
                self._row("webdataset", (row["pair_id"], row["prompt"], row["contrast"], 1))
            elif self._decodes and member.lower().endswith(_IMAGES):
                self._decode(f"{name}: {member}", content.read())

    def _copies(self, name: str, tar: tarfile.TarFile) -> None:
        """The published layout as one file: exactly the files of the folder."""
        wanted = sum(path.startswith("crochum/") for path in self._listed)
        for member, content in _members(tar):
            wanted -= 1
            digest = hashlib.sha256()
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
            if self._listed.get(f"crochum/{member.partition('/')[2]}") != digest.hexdigest():
                self.counted.fault(f"{name}: {member} is not the file that crochum/ has")
        if wanted:
            self.counted.fault(f"{name}: {abs(wanted)} files {'fewer' if wanted > 0 else 'more'}"
                               " than crochum/ has")  # fmt: skip

    def _shard(self, path: Path, name: str) -> None:
        """The images of a Parquet shard, and its texts where they are the pair's."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = ["pair_id", "prompt", "contrast"] if name.startswith("parquet/") else []
        columns = [*texts, *(["image"] if self._decodes else [])]
        try:
            for batch in pq.ParquetFile(path).iter_batches(_ROWS, columns=columns):
                for row in batch.to_pylist():
                    if texts:
                        self._row("parquet", (row["pair_id"], row["prompt"], row["contrast"], 1))
                    if self._decodes:
                        cell = row["image"]
                        self._decode(f"{name}: {cell['path']}", cell["bytes"] or b"")
        except (*_BROKEN, pa.ArrowException) as error:
            self.counted.fault(f"{name}: cannot be read ({error})")


class _Hashed:
    """A file that is read from end to end and hashed on the way."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """The next piece."""
        data = self._stream.read(size)
        self.digest.update(data)
        return data


def _members(tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of an archive that is read as a stream."""
    for member in tar:
        content = tar.extractfile(member)
        if content is not None:
            yield member.name, content
        tar.members = []  # type: ignore[attr-defined]  # else it keeps them all


def _crochum_rows(folder: Path) -> Iterator[Row]:
    text = (folder / "crochum" / METADATA_NAME).read_bytes().decode("utf-8")
    for row in read_table(text):
        yield row.pair_id, row.prompt, row.contrast, sum(map(len, row.paths.values()))


def _imagefolder_rows(folder: Path) -> Iterator[Row]:
    for path in sorted((folder / "imagefolder" / "data").glob("*/metadata.*")):
        rows = _table_rows(path) if path.suffix == ".parquet" else _json_rows(path)
        for row in rows:
            if not (path.parent / row["file_name"]).is_file():
                raise ValueError(f"{row['file_name']} has a row and no file")
            yield row["pair_id"], row["prompt"], row["contrast"], 1


def _table_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    columns = ["file_name", "pair_id", "prompt", "contrast"]
    for batch in pq.ParquetFile(path).iter_batches(batch_size=5_000, columns=columns):
        yield from batch.to_pylist()


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            yield json.loads(line)
