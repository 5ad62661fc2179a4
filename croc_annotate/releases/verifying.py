"""Checking an exported folder against its own manifest, without a database.

Each check is told with what was looked at and the first faults; nothing stops at the first.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tarfile
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.imagefiles import BadImageError, inspect_image
from croc_annotate.lib.jsontext import parse_json
from croc_annotate.releases.export.workdir import file_sha256
from croc_annotate.releases.published import (
    METADATA_NAME,
    PublishedLayoutError,
    read_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SHOWN = 5
_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
Texts = dict[str, tuple[str, str]]


@dataclass
class Check:
    """One question about an export: how many things were looked at, and what is wrong."""

    name: str
    looked_at: int = 0
    faults: list[str] = field(default_factory=list)
    n_faults: int = 0
    note: str = ""

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return self.n_faults == 0

    def fault(self, text: str) -> None:
        """Note a fault; the first few are kept in words."""
        self.n_faults += 1
        if len(self.faults) < _SHOWN:
            self.faults.append(text)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "name": self.name, "ok": self.ok, "looked_at": self.looked_at,
            "faults": self.n_faults, "first_faults": self.faults, "note": self.note,
        }  # fmt: skip


class NotAnExportError(ValueError):
    """The folder holds no manifest that can be read."""


def verify_export(
    folder: Path, *, decode: bool = True, tick: Callable[[], object] = lambda: None
) -> list[Check]:
    """Every check of an exported folder; raises NotAnExportError without a manifest."""
    manifest = read_manifest(folder)
    formats = list(manifest.get("options", {}).get("formats", []))
    checks = [
        _check_files(folder, manifest, tick),
        _check_strangers(folder, manifest),
        _check_counts(manifest),
    ]
    if decode:
        checks.append(_check_images(folder, manifest, tick))
    checks += _check_rows(folder, manifest, formats)
    checks.append(_check_croissant(folder))
    return checks


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest; raises NotAnExportError."""
    path = folder / "manifest.json"
    try:
        found = parse_json(path.read_bytes())
        if not isinstance(found["files"], list) or not isinstance(found["counts"], dict):
            raise NotAnExportError(f"{path}: not the manifest of an export")
    except FileNotFoundError as error:
        raise NotAnExportError(f"{folder}: holds no manifest.json, so it is no export") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotAnExportError(f"{path}: not the manifest of an export ({error})") from error
    return dict(found)


def _check_files(folder: Path, manifest: dict[str, Any], tick: Callable[[], object]) -> Check:
    check = Check("every listed file is there with its size and hash")
    for entry in manifest["files"]:
        check.looked_at += 1
        tick()
        path = folder / entry["path"]
        if not path.is_file() or path.is_symlink():
            check.fault(f"{entry['path']}: is missing")
        elif path.stat().st_size != entry["size"]:
            check.fault(f"{entry['path']}: {path.stat().st_size} bytes, listed are {entry['size']}")
        elif file_sha256(path) != entry["sha256"]:
            check.fault(f"{entry['path']}: another content than listed")
    return check


def _check_strangers(folder: Path, manifest: dict[str, Any]) -> Check:
    check = Check("no file is there that the manifest does not list")
    listed = {entry["path"] for entry in manifest["files"]} | {"manifest.json"}
    for path in _files(folder):
        check.looked_at += 1
        if path not in listed:
            check.fault(f"{path}: is not listed")
    return check


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            yield os.path.relpath(os.path.join(place, name), folder)  # noqa: PTH118


def _check_counts(manifest: dict[str, Any]) -> Check:
    check = Check("the counts by reason add up to all candidates")
    counts = manifest["counts"]
    check.looked_at = len(counts)
    if sum(counts.values()) != manifest.get("candidates"):
        check.fault(f"{sum(counts.values())} by reason, {manifest.get('candidates')} in all")
    parts: Counter[str] = Counter()
    for found in manifest.get("counts_by_category", {}).values():
        parts.update(found)
    for reason, number in counts.items():
        if parts[reason] != number:
            check.fault(f"{reason}: {parts[reason]} by category, {number} in all")
    return check


def _check_images(folder: Path, manifest: dict[str, Any], tick: Callable[[], object]) -> Check:
    check = Check("every image can be decoded")
    for entry in manifest["files"]:
        if entry["path"].lower().endswith(_IMAGES) and (folder / entry["path"]).is_file():
            check.looked_at += 1
            tick()
            _decode(check, entry["path"], (folder / entry["path"]).read_bytes())
    for name in ("parquet", "sft"):
        for path in sorted((folder / name / "data").glob("*.parquet")):
            for cell in _image_cells(path, check):
                check.looked_at += 1
                _decode(check, f"{path.name}: {cell['path']}", cell["bytes"] or b"")
    return check


def _decode(check: Check, name: str, data: bytes) -> None:
    try:
        inspect_image(data)
    except BadImageError as error:
        check.fault(f"{name}: {error}")


def _image_cells(path: Path, check: Check) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=16, columns=["image"]):
            yield from batch.column(0).to_pylist()
    except (OSError, pa.ArrowException) as error:
        check.fault(f"{path.name}: {error}")


def _check_rows(folder: Path, manifest: dict[str, Any], formats: list[str]) -> list[Check]:
    """Counts and texts of every format, held against each other."""
    counted = Check("every format holds the verified images")
    texts = Check("the texts of a pair are the same in every format")
    wanted = manifest["counts"].get("verified", 0)
    known: Texts = {}
    readers = {
        "crochum": _crochum_rows, "imagefolder": _imagefolder_rows, "parquet": _parquet_rows,
        "webdataset": _webdataset_rows,
    }  # fmt: skip
    for name in formats:
        if name not in readers:
            continue
        images: Counter[str] = Counter()
        try:
            for pair_id, prompt, contrast, n_images in readers[name](folder):
                images[name] += n_images
                texts.looked_at += 1
                if known.setdefault(pair_id, (prompt, contrast)) != (prompt, contrast):
                    texts.fault(f"{name}: {pair_id} has other texts than another format")
        except (OSError, ValueError, KeyError, tarfile.TarError, PublishedLayoutError) as error:
            counted.fault(f"{name}: cannot be read ({error})")
        counted.looked_at += 1
        if images[name] != wanted:
            counted.fault(f"{name}: {images[name]} images, {wanted} are verified")
    return [counted, texts]


Row = tuple[str, str, str, int]


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


def _parquet_rows(folder: Path) -> Iterator[Row]:
    for path in sorted((folder / "parquet" / "data").glob("*.parquet")):
        for row in _table_rows(path):
            yield row["pair_id"], row["prompt"], row["contrast"], 1


def _table_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    columns = [
        n for n in ("file_name", "pair_id", "prompt", "contrast") if n in file.schema_arrow.names
    ]
    for batch in file.iter_batches(batch_size=5_000, columns=columns):
        yield from batch.to_pylist()


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def _webdataset_rows(folder: Path) -> Iterator[Row]:
    for path in sorted((folder / "webdataset").glob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith(".json"):
                    stream = tar.extractfile(member)
                    row = json.loads(stream.read() if stream else b"")
                    yield row["pair_id"], row["prompt"], row["contrast"], 1
                tar.members = []  # type: ignore[attr-defined]  # else it keeps them all


def _check_croissant(folder: Path) -> Check:
    check = Check("croissant.json is valid")
    if importlib.util.find_spec("mlcroissant") is None:
        check.note = "not checked: mlcroissant is not installed"
        return check
    import mlcroissant

    check.looked_at = 1
    try:
        dataset = mlcroissant.Dataset(jsonld=os.fspath(folder / "croissant.json"))
        for problem in sorted(dataset.metadata.ctx.issues.errors):
            check.fault(problem)
    except (mlcroissant.ValidationError, ValueError, OSError, KeyError, TypeError) as error:
        check.fault(str(error))
    return check
