"""``README.md``: the data set card, with the YAML head that Hugging Face reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import croc_annotate
from croc_annotate.releases.beside.citation import bibtex, title_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from croc_annotate.releases.formats.base import Job
    from croc_annotate.releases.records import ReleaseFacts

NAME = "README.md"
# Formats that `load_dataset(OUT)` can open as a configuration.
_CONFIGS = ("parquet", "sft")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_REASONS = {
    "verified": "in the release", "rejected": "the text does not hold",
    "disputed": "people disagree and nobody has decided", "too_few": "too few judgements",
    "other_undecided": "undecided whether the pair's other text holds too",
    "other_unjudged": "not judged against the pair's other text",
    "failed": "could not be rendered", "not_rendered": "not rendered yet",
    "inactive": "the pair was taken out of use",
}  # fmt: skip


def card(job: Job, splits_of: Mapping[str, Sequence[str]]) -> str:
    """The whole file; ``splits_of`` names the splits of each format."""
    parts = [
        _head(job, splits_of), _intro(job.facts), _numbers(job), _agreement(job.facts.agreement),
        _making(job), _licences(job.facts), _files(job), _limits(job.facts), _cite(job.facts),
    ]  # fmt: skip
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def _head(job: Job, splits_of: Mapping[str, Sequence[str]]) -> str:
    """YAML written as JSON strings: no text can break out of them."""
    lines = ["---", f"pretty_name: {json.dumps(title_of(job.facts))}", "license: other"]
    lines += ["license_name: per-generator", "license_link: README.md#licences"]
    size = next((label for limit, label in _SIZES if _images(job) < limit), "n>1M")
    lines += ["size_categories:", f"- {json.dumps(size)}"]
    lines += ["tags:", "- image", "- text", "- text-image-alignment", "- contrast-pairs", "- croc"]
    if job.facts.simulated:
        lines.append("- simulated-annotators")
    configs = [name for name in _CONFIGS if name in job.options.formats]
    if configs:
        lines.append("configs:")
    for name in configs:
        lines += [f"- config_name: {name}", "  data_files:"]
        for split in splits_of[name]:
            lines += [f"  - split: {split}", f"    path: {name}/data/{split}-*.parquet"]
    return "\n".join([*lines, "---", ""])


def _images(job: Job) -> int:
    return int(job.facts.counts.get("verified", 0))


def _intro(facts: ReleaseFacts) -> str:
    text = [
        f"# {_plain(title_of(facts))}",
        "",
        f"Version {facts.version}, frozen {facts.created[:10]}.",
    ]
    if facts.simulated:
        text += ["", "> **Simulated.** The judgements in this release were made by a program, to show"
                 " or to test the tool. They say nothing about people or models."]  # fmt: skip
    text += [
        "",
        "Each *contrast pair* is two texts that differ in one visual property. Each image was made by"
        " a text-to-image model from one of the two texts, and people verified that it shows that text."
        " A good metric scores an image higher with the text that it shows.",
    ]
    if facts.notes:
        text += ["", *(f"> {_plain(line)}" for line in facts.notes.splitlines() or [""])]
    return "\n".join(text)


def _numbers(job: Job) -> str:
    facts = job.facts
    rows = [["category", "verified", "candidates"]]
    for slug, counts in facts.by_category.items():
        rows.append([slug, str(counts.get("verified", 0)), str(sum(counts.values()))])
    reasons = [["reason", "candidates", ""]]
    reasons += [
        [reason, str(number), _REASONS.get(reason, "")] for reason, number in facts.counts.items()
    ]
    return "\n".join(
        [
            "## Numbers",
            "",
            f"{len(job.pairs)} pairs, {_images(job)} verified images of"
            f" {sum(facts.counts.values())} candidates.",
            "",
            *_table(rows),
            "",
            *_table(reasons),
        ]
    )


def _agreement(agreement: dict[str, Any]) -> str:
    found = agreement.get("all") or {}
    if not found:
        return "## Agreement\n\nThis release has no judgements of its own."
    rows = [["measure", "value", "95 % interval"]]
    for name, label in (
        ("raw_agreement", "Raw agreement"), ("krippendorff_alpha", "Krippendorff's α"),
        ("gwet_ac1", "Gwet's AC1"), ("prevalence_accept", "Share of accepts"),
        ("unsure_share", "Share of “cannot tell”"),
    ):  # fmt: skip
        rows.append([label, _value(found, name), _interval(found, name)])
    return "\n".join(
        [
            "## Agreement",
            "",
            f"{found.get('judgements', 0)} judgements by {found.get('raters', 0)} annotators;"
            f" {found.get('items_with_two', 0)} items have two votes. Intervals: bootstrap over"
            " contrast pairs.",
            "",
            *_table(rows),
            "",
            "α depends on how many images match; read it beside the raw agreement and AC1."
            " `agreement.json` has the same by category, side and generator.",
        ]
    )


def _value(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if value is None:
        return f"undefined: {(found.get('undefined') or {}).get(name, 'no votes')}"
    return f"{value:.3f}"


def _interval(found: dict[str, Any], name: str) -> str:
    interval = (found.get("intervals") or {}).get(name)
    bounds = [
        interval.get(key) for key in ("low", "high")
    ] if isinstance(interval, dict) else interval  # fmt: skip
    if not bounds or len(bounds) < 2 or any(not isinstance(b, int | float) for b in bounds[:2]):
        return "–"
    return f"{bounds[0]:.3f} – {bounds[1]:.3f}"


def _making(job: Job) -> str:
    facts = job.facts
    if facts.origin == "published":
        how = "The images and their verification are those of the published CROChum benchmark."
    else:
        wanted = facts.parameters
        how = (
            f"An image is in the release when its own text is accepted by the rule `{facts.rule}` from"
            f" {wanted.get('min_judgements', '?')} judgements, or by a reviewer where people disagreed."
        )
        if facts.exclusive:
            how += " People also had to reject the pair's other text for it."
    text = ["## How it was made", "", how]
    if job.options.reencodes:
        text += ["", "Images in this export are re-encoded; `manifest.json` has the hash of each"
                 " original too, and `sha256` in the rows is the original's."]  # fmt: skip
    if job.options.split or len(job.splits) > 1:
        text += ["", f"Splits ({', '.join(job.splits)}) are by pair: no text is in two of them"
                 " (`splits.tsv`)."]  # fmt: skip
    return "\n".join(text)


def _licences(facts: ReleaseFacts) -> str:
    rows = [["generator", "model", "revision", "licence of its output"]]
    rows += [
        [item.label or item.slug, item.model_id or "–", item.revision or "–", item.licence]
        for item in facts.generators.values()
    ]
    return "\n".join(
        [
            "## Licences",
            "",
            "An image carries the licence of the model that made it:",
            "",
            *_table(rows),
        ]
    )


def _files(job: Job) -> str:
    known = {
        "crochum": "`crochum/` – the published layout, for the published evaluation scripts",
        "imagefolder": '`imagefolder/` – `load_dataset("imagefolder", data_dir="imagefolder")`',
        "parquet": "`parquet/` – images inside: `load_dataset` on this folder",
        "webdataset": "`webdataset/` – tar shards for streaming",
        "sft": "`sft/` – Yes/No questions for fine-tuning. Do not score a metric on the release that it"
        " was tuned on",
    }
    lines = [f"- {known.get(name, f'`{name}/`')}" for name in job.options.formats]
    lines += [
        "- `annotations.parquet` – every counted judgement, annotators under pseudonyms",
        "- `agreement.json`, `manifest.json` (hash of every file), `croissant.json`, `CITATION.cff`",
    ]
    return "\n".join(["## Files", "", *lines])


def _limits(facts: ReleaseFacts) -> str:
    lines = [
        "- “No” answers to a pair's other text are assumed from how the pair was made, unless the release"
        " is exclusive." if not facts.exclusive else
        "- Images whose other text people could not reject are left out, which makes the rest easier.",
        "- A verdict can be wrong: majority rules let some errors through, more where few images match.",
        "- The images are of the generators named above; metrics may rank differently on others.",
        "- Only alignment was judged, not beauty, safety or truth.",
    ]  # fmt: skip
    return "\n".join(["## Known limits", "", *lines])


def _cite(facts: ReleaseFacts) -> str:
    return "\n".join(
        [
            "## Citation",
            "",
            "```bibtex",
            bibtex(facts).rstrip(),
            "```",
            "",
            f"Made with croc-annotate {croc_annotate.__version__}. Content hash: `{facts.sha256}`.",
        ]
    )


def _table(rows: Iterable[list[str]]) -> list[str]:
    head, *body = ([_cell(cell) for cell in row] for row in rows)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(row)} |" for row in body]


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|") or "–"


def _plain(text: str) -> str:
    """One line that Markdown shows as it is, without markup of its own."""
    line = " ".join(text.split())
    for sign in "\\`*_[]<>#":
        line = line.replace(
            sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign]
        )
    return line
