"""What an export may be asked for, checked once, and the name that equal wishes share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from croc_annotate.lib.hashing import canonical_json, sha256_text

IMAGE_FORMATS = ("original", "png", "jpeg", "webp")
METADATA_FORMATS = ("parquet", "jsonl")
REMAINDER = "test"
# Raise it when the bytes of an export change for equal options: half-done folders start anew.
LAYOUT = 3


class BadOptionsError(ValueError):
    """The options contradict each other or name what does not exist."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Everything that decides the bytes of an export, apart from the release."""

    formats: tuple[str, ...] = ("crochum",)
    image_format: str = "original"
    max_side: int | None = None
    quality: int = 90
    split: dict[str, float] = field(default_factory=dict)
    split_seed: int = 1
    metadata: str = "parquet"
    tar: bool = False

    def __post_init__(self) -> None:
        if not self.formats or len(set(self.formats)) != len(self.formats):
            raise BadOptionsError("name each format once")
        if self.image_format not in IMAGE_FORMATS:
            raise BadOptionsError(f"--image-format is one of {', '.join(IMAGE_FORMATS)}")
        if self.metadata not in METADATA_FORMATS:
            raise BadOptionsError(f"--metadata is one of {', '.join(METADATA_FORMATS)}")
        if self.max_side is not None and not 16 <= self.max_side <= 16_384:
            raise BadOptionsError("--max-side is between 16 and 16384")
        if not 1 <= self.quality <= 100:
            raise BadOptionsError("--quality is between 1 and 100")
        if self.tar and "crochum" not in self.formats:
            raise BadOptionsError("--tar belongs to --format crochum")
        _check_split(self.split)

    @property
    def reencodes(self) -> bool:
        """Whether images are other bytes than those that people judged."""
        return self.image_format != "original" or self.max_side is not None

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON."""
        return {**asdict(self), "formats": list(self.formats)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ExportOptions:
        """The options from JSON; raises BadOptionsError."""
        return cls(**{**values, "formats": tuple(values["formats"])})

    def digest(self, release_sha256: str, software: str) -> str:
        """The name of this export: equal for equal bytes."""
        return sha256_text(canonical_json([LAYOUT, release_sha256, software, self.as_dict()]))


def parse_split(words: list[str]) -> dict[str, float]:
    """``["dev=0.2"]`` as a mapping; raises BadOptionsError."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, share = word.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not equals or not name.isidentifier() or not 0 < value < 1 or name in found:
            raise BadOptionsError(f"--split {word!r}: write it like dev=0.2, each name once")
        found[name] = value
    return found


def _check_split(split: dict[str, float]) -> None:
    if REMAINDER in split:
        raise BadOptionsError(f"“{REMAINDER}” is what is left of the other splits")
    if sum(split.values()) >= 1:
        raise BadOptionsError(f"the splits leave nothing for “{REMAINDER}”")
