"""How to cite a release: CITATION.cff and BibTeX."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from croc_annotate.releases.records import ReleaseFacts

PAPER_TITLE = (
    "CROC: Evaluating and Training T2I Metrics with Pseudo- and Human-Labeled "
    "Contrastive Robustness Checks"
)
PAPER_AUTHORS = (
    ("Christoph", "Leiter"), ("Yuki M.", "Asano"), ("Margret", "Keuper"), ("Steffen", "Eger"),
)  # fmt: skip
PAPER_URL = "https://arxiv.org/abs/2505.11314"


def citation_cff(facts: ReleaseFacts) -> str:
    """The file by which GitHub and Zenodo cite a data set. Strings are JSON, which YAML contains."""
    authors = "".join(
        f"      - given-names: {_quoted(given)}\n        family-names: {_quoted(family)}\n"
        for given, family in PAPER_AUTHORS
    )
    return (
        "cff-version: 1.2.0\n"
        'message: "If you use this data set, please cite it and the paper below."\n'
        "type: dataset\n"
        f"title: {_quoted(title_of(facts))}\n"
        f"version: {_quoted(facts.version)}\n"
        f"date-released: {facts.created[:10]}\n"
        "authors:\n"
        f"  - name: {_quoted(_makers(facts))}\n"
        "identifiers:\n"
        "  - type: other\n"
        f"    value: {_quoted('sha256:' + facts.sha256)}\n"
        '    description: "Hash of the content of the release"\n'
        "references:\n"
        "  - type: article\n"
        f"    title: {_quoted(PAPER_TITLE)}\n"
        "    authors:\n"
        f"{authors}"
        "    year: 2025\n"
        f"    url: {_quoted(PAPER_URL)}\n"
    )


def bibtex(facts: ReleaseFacts) -> str:
    """The same for a paper."""
    key = re.sub(r"[^A-Za-z0-9]+", "_", f"{facts.name}_{facts.version}").strip("_")
    return (
        f"@misc{{{key},\n"
        f"  title = {{{{{title_of(facts)}}}}},\n"
        f"  author = {{{{{_makers(facts)}}}}},\n"
        f"  year = {{{facts.created[:4]}}},\n"
        f"  note = {{Version {facts.version}, sha256:{facts.sha256}}}\n"
        "}\n"
    )


def title_of(facts: ReleaseFacts) -> str:
    """The name of the data set."""
    return f"{facts.name}: human-verified contrast pairs of texts and images"


def _makers(facts: ReleaseFacts) -> str:
    return f"The makers of {facts.name}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
