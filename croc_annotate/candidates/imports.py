"""Bring images from elsewhere in: look at everything first, then store, or store nothing."""

from __future__ import annotations

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from croc_annotate.candidates.manifest import ManifestError
from croc_annotate.candidates.models import Candidate, CandidateState, Generator
from croc_annotate.candidates.services import store_image
from croc_annotate.lib.imagefiles import BadImageError, inspect_image
from croc_annotate.prompts.models import ContrastPair, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from croc_annotate.candidates.manifest import ManifestRow

_FAULTS_SHOWN = 20


@dataclass
class ImportReport:
    """What an import did. ``same_image`` lists hashes that stand under several ids."""

    created: int = 0
    unchanged: int = 0
    new_generators: list[str] = field(default_factory=list)
    same_image: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Checked:
    row: ManifestRow
    path: Path
    pair: ContrastPair
    sha256: str


def import_images(
    *,
    folder: Path,
    rows: Sequence[ManifestRow],
    watch: Callable[[Iterable[_Checked], str, int], Iterator[_Checked]] | None = None,
) -> ImportReport:
    """Store all images of a manifest; raises ManifestError, and stores nothing, if one is wrong.

    An image that is there already is left alone, so a run can be repeated or resumed.
    """
    show = watch or (lambda items, _label, _total: iter(items))
    checked = _check(folder, rows, show)
    there = _there(checked)
    report = ImportReport(same_image=_same_image(checked))
    generators = _generators(rows, report)
    for item in show(checked, "Storing", len(checked)):
        if there.get(_key(item.row)) == item.sha256:
            report.unchanged += 1
        else:
            _store(item, generators[item.row.generator])
            report.created += 1
    return report


def _check(
    folder: Path,
    rows: Sequence[ManifestRow],
    show: Callable[[Iterable[_Checked], str, int], Iterator[_Checked]],
) -> list[_Checked]:
    pairs = {
        pair.slug: pair
        for pair in ContrastPair.objects.active().filter(slug__in={row.pair_id for row in rows})
    }
    faults: list[str] = []

    def look(row: ManifestRow) -> _Checked | str:
        try:
            return _checked(folder, row, pairs)
        except (ValueError, OSError) as error:
            return f"{row.place}: {row.file}: {error}"

    def good() -> Iterator[_Checked]:
        # Decoding releases the interpreter lock, so threads use all cores.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for result in pool.map(look, rows):
                if isinstance(result, str):
                    faults.append(result)
                else:
                    yield result

    checked = list(show(good(), "Checking", len(rows)))
    faults.extend(_other_image(checked))
    if faults:
        more = len(faults) - _FAULTS_SHOWN
        raise ManifestError([*faults[:_FAULTS_SHOWN], *([f"and {more} more"] if more > 0 else [])])
    return checked


def _checked(folder: Path, row: ManifestRow, pairs: dict[str, ContrastPair]) -> _Checked:
    pair = pairs.get(row.pair_id)
    if pair is None:
        raise ValueError(f"unknown pair {row.pair_id!r}: load its prompts first (load_prompts)")
    if row.side == Side.ALT_CONTRAST and not pair.alt_contrast:
        raise ValueError(f"the pair {row.pair_id!r} has no alt_contrast text")
    path = _plain_file(folder, row.file)
    try:
        facts = inspect_image(path.read_bytes())
    except BadImageError as error:
        raise ValueError(str(error)) from error
    if row.sha256 and row.sha256 != facts.sha256:
        raise ValueError("its SHA-256 is not the one in the manifest")
    return _Checked(row, path, pair, facts.sha256)


def _plain_file(folder: Path, file: str) -> Path:
    """The file, reached without a symbolic link; raises ValueError."""
    path = folder
    for part in file.split("/"):
        path = path / part
        if path.is_symlink():
            raise ValueError("a symbolic link")
    if not path.is_file():
        raise ValueError("no such file" if not path.exists() else "not a plain file")
    return path


def _key(row: ManifestRow) -> tuple[str, str, str, int]:
    return row.pair_id, row.side, row.generator, row.seed


def _there(checked: Sequence[_Checked]) -> dict[tuple[str, str, str, int], str]:
    """SHA-256 of the images that are there, by pair, side, generator and seed."""
    rows = Candidate.objects.rendered().filter(
        pair__in={item.pair.pk for item in checked},
        generator__slug__in={item.row.generator for item in checked},
    )
    values = rows.values_list("pair__slug", "side", "generator__slug", "seed", "sha256")
    return {(slug, side, name, seed): sha for slug, side, name, seed, sha in values.iterator()}


def _other_image(checked: Sequence[_Checked]) -> Iterator[str]:
    there = _there(checked)
    for item in checked:
        if there.get(_key(item.row), item.sha256) != item.sha256:
            yield (
                f"{item.row.place}: {item.row.file}: another image of this pair, side, generator "
                "and seed is there already"
            )


def _same_image(checked: Sequence[_Checked]) -> dict[str, list[str]]:
    """Hashes that this import or the database holds under more than one id."""
    places: dict[str, set[str]] = defaultdict(set)
    for item in checked:
        places[item.sha256].add("___".join(map(str, _key(item.row))))
    known = Candidate.objects.rendered().filter(sha256__in=list(places))
    values = known.values_list("sha256", "pair__slug", "side", "generator__slug", "seed")
    for sha, *key in values.iterator():
        places[sha].add("___".join(map(str, key)))
    return {sha: sorted(names) for sha, names in places.items() if len(names) > 1}


def _generators(rows: Sequence[ManifestRow], report: ImportReport) -> dict[str, Generator]:
    generators = {}
    for slug in sorted({row.generator for row in rows}):
        generators[slug], created = Generator.objects.get_or_create(
            slug=slug, defaults={"label": slug.replace("_", " "), "licence": "unknown"}
        )
        if created:
            report.new_generators.append(slug)
    return generators


def _store(item: _Checked, generator: Generator) -> None:
    candidate, _ = Candidate.objects.update_or_create(
        pair=item.pair,
        side=item.row.side,
        generator=generator,
        seed=item.row.seed,
        defaults={"source_name": item.row.file},
    )
    if candidate.state == CandidateState.RENDERED:
        return  # another run of the same import was quicker
    store_image(
        candidate=candidate,
        data=item.path.read_bytes(),
        provenance={"source": "import", "file": item.row.file},
    )
