"""Read files of graded human judgements beside metric scores: TIFA and GenAI-Bench (no Django)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from croc_annotate.benchmark.correlation import group_codes
from croc_annotate.lib.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from croc_annotate.benchmark.layout import Floats, Ints

_HUMAN_KEYS = {"human_avg", "human_scores", "human"}


class HumanFileError(ValueError):
    """The file is not of a known form; the message says where."""


@dataclass(frozen=True)
class GradedSet:
    """Images with a mean human grade and the scores of metrics, NaN where missing."""

    keys: tuple[str, ...]
    prompt: Ints
    """Number of the prompt that each image was made for."""
    human: Floats
    metrics: dict[str, Floats]
    skills: dict[str, np.ndarray]
    """Skill → mask of the images whose prompt needs it."""


def read(
    path: Path,
    *,
    scores: Path | None = None,
    skills: Path | None = None,
    need_scores: bool = True,
) -> GradedSet:
    """Read a TIFA-like file, or a GenAI-Bench-like file with a file of scores.

    TIFA: {key: {text, human_avg or human_scores, and a number for each metric}}.
    GenAI-Bench: {id: {prompt, models: {generator: [grades]}}}; its scores come from another file
    {metric: {"id/generator": score}}. Raises HumanFileError.
    """
    entries = _load(path)
    if not entries:
        raise HumanFileError(f"{path}: holds no entry.")
    first = next(iter(entries.values()))
    if isinstance(first, dict) and "models" in first:
        graded = _genai_bench(entries, path)
    else:
        graded = _tifa(entries, path)
    if scores is not None:
        graded = _with_scores(graded, _load(scores), scores)
    if skills is not None:
        graded = _with_skills(graded, entries, _load(skills))
    if need_scores and not graded.metrics:
        raise HumanFileError(f"{path}: holds no metric's scores; give them with --scores FILE.")
    return graded


def image_names(path: Path, graded: GradedSet) -> list[tuple[str, str]]:
    """(image file, text) of each entry, to score them with a metric of our own.

    TIFA: `image_path`, else the key with .jpg; GenAI-Bench: `generator/id.jpeg` as its archive
    lays them out.
    """
    entries = _load(path)
    names = []
    for key in graded.keys:
        entry = entries.get(key)
        if entry is not None:
            names.append((str(entry.get("image_path") or f"{key}.jpg"), str(entry["text"])))
        else:
            number, _, generator = key.partition("/")
            names.append((f"{generator}/{number}.jpeg", str(entries[number]["prompt"])))
    return names


def _load(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(path.read_bytes(), nan=True)
    except OSError as error:
        raise HumanFileError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise HumanFileError(f"{path}: is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise HumanFileError(f"{path}: expected a JSON object of entries.")
    return data


def _tifa(entries: Mapping[str, Any], path: Path) -> GradedSet:
    human, texts = [], []
    names: dict[str, None] = {}
    for key, entry in entries.items():
        if not isinstance(entry, dict):
            raise HumanFileError(f"{path}, entry {key!r}: expected an object.")
        human.append(_grade(key, entry, path))
        texts.append(str(entry.get("text_id") or entry.get("text") or key))
        names |= dict.fromkeys(
            name for name, value in entry.items()
            if name not in _HUMAN_KEYS and _is_number(value)
        )  # fmt: skip
    metrics = {
        name: np.array([_number_or_nan(e.get(name)) for e in entries.values()]) for name in names
    }
    return GradedSet(tuple(entries), group_codes(texts), np.array(human), metrics, {})


def _grade(key: str, entry: Mapping[str, Any], path: Path) -> float:
    if _is_number(entry.get("human_avg")):
        return float(entry["human_avg"])
    grades = entry.get("human_scores", entry.get("human"))
    if isinstance(grades, list) and grades and all(_is_number(g) for g in grades):
        return float(np.mean(grades))
    raise HumanFileError(f"{path}, entry {key!r}: neither human_avg nor human_scores.")


def _genai_bench(entries: Mapping[str, Any], path: Path) -> GradedSet:
    keys, prompts, human = [], [], []
    for key, entry in entries.items():
        for generator, grades in entry["models"].items():
            if not grades or not all(_is_number(g) for g in grades):
                raise HumanFileError(f"{path}, entry {key!r}, {generator}: grades are missing.")
            keys.append(f"{key}/{generator}")
            prompts.append(key)
            human.append(float(np.mean(grades)))
    return GradedSet(tuple(keys), group_codes(prompts), np.array(human), {}, {})


def _with_scores(graded: GradedSet, scores: Mapping[str, Any], path: Path) -> GradedSet:
    metrics = dict(graded.metrics)
    for name, own in scores.items():
        if not isinstance(own, dict):
            raise HumanFileError(f"{path}: expected {{metric: {{image: score}}}}, not {name!r}.")
        unknown = sorted(set(own) - set(graded.keys))
        if unknown:
            raise HumanFileError(f"{path}: {name} has a score for the unknown image {unknown[0]}.")
        metrics[name] = np.array([_number_or_nan(own.get(key)) for key in graded.keys])
    return GradedSet(graded.keys, graded.prompt, graded.human, metrics, graded.skills)


def _with_skills(
    graded: GradedSet, entries: Mapping[str, Any], skills: Mapping[str, Any]
) -> GradedSet:
    """GenAI-Bench's skills: {skill: [prompt ids]}."""
    prompt_of = [key.rpartition("/")[0] or key for key in graded.keys]
    masks = {}
    for skill, ids in skills.items():
        wanted = {str(i) for i in ids} & set(entries)
        masks[skill] = np.array([p in wanted for p in prompt_of])
    return GradedSet(graded.keys, graded.prompt, graded.human, graded.metrics, masks)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_or_nan(value: Any) -> float:
    return float(value) if _is_number(value) else float("nan")
