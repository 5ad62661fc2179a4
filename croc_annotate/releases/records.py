"""A release as plain rows: what selectors hand to the writers, which know no database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from croc_annotate.releases.published import image_path, image_stem

EVALUATED = {"negation": "alt_contrast"}


def evaluated_side(category: str) -> str:
    """The contrast side whose images are scored."""
    return EVALUATED.get(category, "contrast")


@dataclass(frozen=True, slots=True)
class ScoredMember:
    """A verified image of P (role ``prompt``) or of Q (role ``contrast``) of its pair."""

    pair_slug: str
    category: str
    side: str
    role: str
    prompt: str
    contrast: str
    candidate_id: int
    sha256: str
    storage_name: str
    generator: str
    seed: int


@dataclass(frozen=True, slots=True)
class PairRecord:
    """A pair of a release, with or without images."""

    slug: str
    version: int
    category: str
    prompt: str
    contrast: str
    alt_contrast: str
    property: str
    topic: str
    entity: str


@dataclass(frozen=True, slots=True)
class GeneratorRecord:
    """A generator as it was when the release was frozen; ``field`` is its name in file names."""

    slug: str
    label: str
    model_id: str
    revision: str
    licence: str
    field: str
    is_drawn: bool = False


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """A verified image with all that a reader needs to know about it."""

    pair: PairRecord
    side: str
    generator: GeneratorRecord
    seed: int
    storage_name: str
    suffix: str
    width: int
    height: int
    sha256: str
    verified_by: str
    n_accept: int | None
    n_reject: int | None
    n_unsure: int | None
    posterior: float | None
    campaign: str
    guideline_version: str

    @property
    def id(self) -> str:
        """Its name in every file of the release, in this project's spelling."""
        return image_stem(
            pair_id=self.pair.slug, side=self.side, generator=self.generator.field, number=self.seed
        )

    @property
    def role(self) -> str:
        """``prompt``, ``contrast``, or "" for a side that is never scored."""
        if self.side == "prompt":
            return "prompt"
        return "contrast" if self.side == evaluated_side(self.pair.category) else ""

    @property
    def text(self) -> str:
        """The text that people verified the image for."""
        return self.pair.prompt if self.side == "prompt" else self.pair.contrast

    @property
    def contrast_text(self) -> str:
        """The pair's text that the image should not show."""
        return self.pair.contrast if self.side == "prompt" else self.pair.prompt

    def published_path(self, suffix: str) -> str:
        """Its place in the published layout."""
        return image_path(category=self.pair.category, stem=self.id, side=self.side, suffix=suffix)


@dataclass(frozen=True, slots=True)
class AnnotationRecord:
    """One counted judgement under a pseudonym; ``item`` is the image's id."""

    item: str
    pair_id: str
    category: str
    side: str
    generator: str
    seed: int
    text_role: str
    annotator: str
    verdict: str
    active_seconds: float | None
    judged_at: int  # microseconds since 1970, UTC
    mode: str
    guideline_version: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What a release says about itself, all of it frozen."""

    name: str
    version: str
    created: str  # ISO date and time, UTC
    origin: str
    rule: str
    parameters: dict[str, Any]
    notes: str
    counts: dict[str, int]
    agreement: dict[str, Any]
    generators: dict[str, GeneratorRecord]
    sha256: str
    simulated: bool
    withdrawn: str = ""
    by_category: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"

    @property
    def exclusive(self) -> bool:
        """Whether people also had to reject the other text."""
        return bool(self.parameters.get("exclusive", False))
