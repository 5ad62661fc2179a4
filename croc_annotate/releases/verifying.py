"""Checking an exported folder against its own manifest, without a database.

Each check is told with what was looked at and the first faults; nothing stops at the first.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from croc_annotate.lib.jsontext import parse_json
from croc_annotate.releases.checks import Check
from croc_annotate.releases.verifying_walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_ENTRY = {"path": str, "size": int, "sha256": str}


class NotAnExportError(ValueError):
    """The folder holds no manifest that can be read."""


def verify_export(
    folder: Path, *, decode: bool = True, tick: Callable[[], object] = lambda: None
) -> list[Check]:
    """Every check of an exported folder; raises NotAnExportError without a manifest."""
    manifest = read_manifest(folder)
    formats = list(manifest.get("options", {}).get("formats", []))
    walk = Walk(folder, manifest["files"], decode=decode)
    for entry in manifest["files"]:
        walk.look_at(entry)
        tick()
    walk.count(formats, manifest["counts"].get("verified", 0))
    checks = [walk.files, _check_strangers(folder, manifest), _check_counts(manifest)]
    if decode:
        checks.append(walk.images)
    checks += [walk.counted, walk.texts]
    checks.append(_check_croissant(folder))
    return checks


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest; raises NotAnExportError."""
    path = folder / "manifest.json"
    try:
        found = parse_json(path.read_bytes())
        _check_shape(found)
    except FileNotFoundError as error:
        raise NotAnExportError(f"{folder}: holds no manifest.json, so it is no export") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotAnExportError(f"{path}: not the manifest of an export ({error})") from error
    return dict(found)


def _check_shape(manifest: dict[str, Any]) -> None:
    if not isinstance(manifest["files"], list) or not isinstance(manifest["counts"], dict):
        raise TypeError("files is no list or counts no object")
    for entry in manifest["files"]:
        if not all(isinstance(entry[name], kind) for name, kind in _ENTRY.items()):
            raise TypeError("an entry of files is not path, size and sha256")


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
