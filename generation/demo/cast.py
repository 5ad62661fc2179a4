"""The demo's simulated annotators: how well each sees, how fast each is. Pure arithmetic.

They are two-coin annotators: with probability *sensitivity* they accept an image that shows the
text, with probability *specificity* they reject one that does not. Harder images bring both
closer to a guess. Everything is drawn from hashes, so that a demo can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from croc_annotate.lib.hashing import stable_unit

ACCEPT, REJECT, UNSURE = "accept", "reject", "unsure"
# Beyond this hardness an image is hard; the hardest is little better than a guess.
HARD = 0.7
GUESS = 0.55


@dataclass(frozen=True)
class Simulated:
    """One simulated annotator."""

    username: str
    label: str
    sensitivity: float
    specificity: float
    unsure: float
    pace_ms: int


CAST = (
    Simulated("sim-1", "Simulated annotator 1", 0.98, 0.96, 0.01, 3400),
    Simulated("sim-2", "Simulated annotator 2", 0.96, 0.95, 0.02, 4100),
    Simulated("sim-3", "Simulated annotator 3", 0.95, 0.93, 0.04, 5200),
    Simulated("sim-4", "Simulated annotator 4", 0.97, 0.86, 0.01, 2900),
    Simulated("sim-5", "Simulated annotator 5", 0.88, 0.95, 0.03, 4600),
    Simulated("sim-6", "Simulated annotator 6 (careless)", 0.74, 0.62, 0.00, 1300),
)


@dataclass(frozen=True)
class Sight:
    """What a simulated annotator is asked about: an image by its names, and the truth."""

    pair: str
    side: str
    generator: str
    seed: int
    text_role: str
    truth: bool
    plain: bool = False

    @property
    def name(self) -> str:
        """A name of the image and text that does not change from run to run."""
        return f"{self.pair}/{self.side}/{self.generator}/{self.seed}/{self.text_role}"

    @property
    def hardness(self) -> float:
        """How hard the image is, 0 to 1: mostly a matter of its pair. Known items are plain ones."""
        if self.plain:
            return 0.0
        pair = stable_unit("hard pair", self.pair)
        image = stable_unit("hard image", self.name)
        return 0.7 * pair + 0.3 * image


def answer(person: Simulated, sight: Sight) -> tuple[str, int]:
    """The person's verdict on the image, and the active milliseconds that it took."""
    over = max(0.0, (sight.hardness - HARD) / (1 - HARD))
    spread = stable_unit("pace", person.username, sight.name)
    active_ms = int(person.pace_ms * (0.55 + 0.9 * spread) * (1 + over))
    if stable_unit("unsure", person.username, sight.name) < person.unsure * (1 + 6 * over):
        return UNSURE, active_ms
    skill = person.sensitivity if sight.truth else person.specificity
    right = stable_unit("vote", person.username, sight.name) < skill + over * (GUESS - skill)
    return (ACCEPT if right == sight.truth else REJECT), active_ms
