"""What is compared with what: the images of a release as flat arrays (pure).

P are the images of the prompt side, Q those of the evaluated contrast side; T is a pair's
prompt and C its contrast. Every array of one side has one entry an image, in one order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from croc_annotate.benchmark.groups import Groups
from croc_annotate.lib.components import connected_components

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Direction = Literal["text_forward", "text_inverse", "image_forward", "image_inverse"]
DIRECTIONS: Final[tuple[Direction, ...]] = (
    "text_forward",
    "text_inverse",
    "image_forward",
    "image_inverse",
)

HARD_CATEGORIES: Final = (
    "action",
    "body_parts",
    "counting",
    "negation",
    "shapes",
    "size_relation",
    "spatial_relation",
    "things_parts",
)


def in_category_order(names: Sequence[str]) -> list[str]:
    """Sort names: the eight hard categories in their order, then the rest by alphabet."""
    rank = {name: index for index, name in enumerate(HARD_CATEGORIES)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


@dataclass(frozen=True)
class Side:
    """The images of one side: `pair` and `generator` are indices, shape (n_images,)."""

    pair: Ints
    generator: Ints

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, keep: Bools) -> Side:
        """Only the images where `keep` is true."""
        return Side(self.pair[keep], self.generator[keep])

    def renumber(self, number: Ints) -> Side:
        """The same images with pair `number[p]` instead of p."""
        return Side(number[self.pair], self.generator)


@dataclass(frozen=True)
class Layout:
    """The pairs and images that a release fixes, the same for every metric."""

    pair_ids: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    """(prompt, contrast) of each pair."""
    categories: tuple[str, ...]
    category: Ints
    """Index into `categories`, shape (n_pairs,)."""
    generators: tuple[str, ...]
    prompt: Side
    contrast: Side
    facets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Further groupings of pairs by name, e.g. "property"; one value a pair."""

    @property
    def n_pairs(self) -> int:
        """Number of contrast pairs."""
        return len(self.pair_ids)

    @cached_property
    def by_pair(self) -> tuple[Groups, Groups]:
        """The images of the prompt side and of the contrast side, grouped by pair."""
        return Groups(self.prompt.pair, self.n_pairs), Groups(self.contrast.pair, self.n_pairs)

    @cached_property
    def by_pair_and_generator(self) -> tuple[Groups, Groups]:
        """The images of both sides grouped by pair and generator together."""
        g = max(len(self.generators), 1)
        p, q = (
            Groups(s.pair * g + s.generator, self.n_pairs, g) for s in (self.prompt, self.contrast)
        )
        return p, q

    @cached_property
    def components(self) -> Ints:
        """Component number of each pair: pairs of one component share texts."""
        return connected_components(self.texts)

    @cached_property
    def possible(self) -> Bools:
        """Whether the release holds the images that a direction needs, shape (4, n_pairs)."""
        has_p, has_q = (groups.sizes > 0 for groups in self.by_pair)
        return np.stack([has_p, has_q, has_p & has_q, has_p & has_q])

    def restrict(
        self,
        *,
        pairs: Bools | None = None,
        prompt: Bools | None = None,
        contrast: Bools | None = None,
    ) -> tuple[Layout, Bools, Bools]:
        """Only some pairs and images; returns the masks of the images that stay, too.

        Pairs and categories that have no image left are dropped.
        """  # fmt: skip
        keep_p = np.ones(len(self.prompt), dtype=bool) if prompt is None else prompt
        keep_q = np.ones(len(self.contrast), dtype=bool) if contrast is None else contrast
        if pairs is not None:
            keep_p = keep_p & pairs[self.prompt.pair]
            keep_q = keep_q & pairs[self.contrast.pair]
        left = np.zeros(self.n_pairs, dtype=bool)
        left[self.prompt.pair[keep_p]] = True
        left[self.contrast.pair[keep_q]] = True
        chosen = np.flatnonzero(left)
        number = np.cumsum(left) - 1
        codes, category = np.unique(self.category[chosen], return_inverse=True)
        return (
            Layout(
                pair_ids=tuple(self.pair_ids[i] for i in chosen),
                texts=tuple(self.texts[i] for i in chosen),
                categories=tuple(self.categories[i] for i in codes),
                category=category.astype(np.int64),
                generators=self.generators,
                prompt=self.prompt.take(keep_p).renumber(number),
                contrast=self.contrast.take(keep_q).renumber(number),
                facets={k: tuple(v[i] for i in chosen) for k, v in self.facets.items()},
            ),
            keep_p,
            keep_q,
        )


@dataclass(frozen=True)
class Scores:
    """One metric's scores, NaN where there is none; one entry an image of the side."""

    prompt_own: Floats
    """s(T, i) for i in P."""
    prompt_other: Floats
    """s(C, i) for i in P."""
    contrast_own: Floats
    """s(C, j) for j in Q."""
    contrast_other: Floats
    """s(T, j) for j in Q."""

    def keep_images(self, prompt: Bools, contrast: Bools) -> Scores:
        """Only some images of each side, by the masks that `Layout.restrict` returns."""
        return Scores(
            self.prompt_own[prompt],
            self.prompt_other[prompt],
            self.contrast_own[contrast],
            self.contrast_other[contrast],
        )
