"""What every source of images looks like to the rest of the system.

A pipeline is one self-contained file that turns a text and a list of seeds into
images. It knows nothing of rows, queues or storage; `generation.worker` knows
nothing of models. This module is the border: it imports neither Django nor torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from PIL import Image

    from generation.render_settings import RenderSettings

Facts = Mapping[str, object]


class PipelineError(Exception):
    """A pipeline cannot go on; the message says why and what to do."""


class DoesNotFit(PipelineError):  # noqa: N818 - a state of the device, not a fault
    """The batch needs more memory than the device has; a smaller one may fit."""


class DeviceLost(PipelineError):  # noqa: N818 - a state of the device, not a fault
    """The device is in a state that only a fresh process can leave."""


class OutOfBudget(PipelineError):  # noqa: N818 - a decision, not a fault
    """A paid source reached the spending cap of its settings."""


class TryLater(PipelineError):  # noqa: N818 - a state of the other side
    """The source cannot be reached now; the same request may work later."""


class ErrorsInARow(PipelineError):  # noqa: N818 - a count, not a fault of its own
    """So many unexpected errors that nothing can work; what was asked for may be billed."""


@dataclass(frozen=True)
class GeneratorSpec:
    """A Generator row as a pipeline sees it."""

    slug: str
    model_id: str
    settings: RenderSettings
    revision: str = ""


@dataclass(frozen=True)
class RenderedImage:
    """One finished image.

    Exactly one of `image` (pixels; encoded later, off the device's critical path) and
    `data` (a file as the source sent it, kept byte for byte) is set. `facts` are JSON
    values that go into the provenance: seconds, batch size, the scene's truth.
    """

    seed: int
    image: Image.Image | None = None
    data: bytes | None = None
    facts: Facts = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.image is None) == (self.data is None):
            raise ValueError("a rendered image has either pixels or a file's bytes")


@dataclass(frozen=True)
class RenderFailure:
    """One seed that gave no usable image, with the reason in words."""

    seed: int
    reason: str


Outcome = RenderedImage | RenderFailure


@runtime_checkable
class Pipeline(Protocol):
    """A source of images: constructed with a spec, loaded once, asked many times.

    `render` yields one outcome per seed, in any order, as soon as each is there. The
    image of (text, seed) does not depend on which other seeds are asked for with it.
    It may raise `DoesNotFit` for the seeds that it has not yielded yet; the caller asks
    again with fewer. `defaults` are the settings of a row that names none.
    """

    defaults: ClassVar[Mapping[str, object]]
    spec: GeneratorSpec

    def load(self) -> None:
        """Get ready: read weights, move them to the device. Called once."""
        ...

    def render(self, text: str, seeds: Sequence[int]) -> Iterator[Outcome]:
        """Yield one outcome per seed for one text."""
        ...

    def describe(self) -> dict[str, object]:
        """Provenance that all images of this pipeline share (JSON values)."""
        ...

    def close(self) -> None:
        """Give the device's memory back."""
        ...
