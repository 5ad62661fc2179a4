"""A worker: claims waiting candidates, has them drawn, stores each image as soon as it is there.

The rows are the truth. The worker may be killed at any instruction: what it held becomes
claimable when its lease runs out, and an image is either stored whole or not at all.

The thread that runs here does everything with the database; the device has a thread of its
own and finds its next batch waiting; PNGs are encoded in a few more.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from django.utils import timezone

from croc_annotate.candidates.claims import Claim, Group, claim_batch, release_claim
from croc_annotate.candidates.services import fail_candidate, keep_image
from generation.batching import FittingBatches
from generation.budget import check_budget
from generation.device import Batch, Device
from generation.finishing import FinishedImage, Unfinished, finish
from generation.heart import LEASE, Heart
from generation.patience import away, patiently
from generation.pipeline import ErrorsInARow, OutOfBudget, PipelineError
from generation.registry import build_pipeline
from generation.streak import Streak, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from croc_annotate.candidates.models import Candidate, Generator
    from generation.finishing import Finished
    from generation.pipeline import Outcome, Pipeline

logger = logging.getLogger(__name__)

_ENCODERS = 2
# A claim costs two statements, whatever it holds. So it holds what is drawn in about this time
# (a batch at least): little beside an image that takes seconds, and never so many that other
# workers would look for work beside it. At most twice as many wait at a device.
_CLAIMED_SECONDS = 1.0
_CLAIMED_AT_MOST = 16
_CLAIMED_UNTRIED = 4


@dataclass
class Tally:
    """What became of a group: images stored, candidates given up, and whether work is left."""

    rendered: int = 0
    failed: int = 0
    stopped: bool = False


@dataclass(frozen=True)
class _Handed:
    """A claim whose candidates are with the device."""

    claim: Claim
    batch: Batch


class Worker:
    """One process on one device. Not shared between threads."""

    def __init__(self, *, queue: str = "gpu") -> None:
        self.pid = os.getpid()
        self.name = f"{socket.gethostname()[:60]}:{self.pid}:{secrets.token_hex(2)}"
        self.stop = threading.Event()
        self.heart = Heart(self.name, queue)
        self._loaded: _Loaded | None = None
        self._encoders = ThreadPoolExecutor(_ENCODERS, thread_name_prefix="encode")
        self._unfinished = Streak("images in a row could not be encoded or stored")

    def start(self) -> None:
        """Be seen, and keep what is claimed."""
        patiently(self.heart.start)

    def close(self) -> None:
        """Give the device back and say good-bye."""
        self._unload()
        self._encoders.shutdown()
        self.heart.stop()

    def render_group(self, group: Group) -> Tally:
        """Render what a group waits for; see `results`."""
        tally = Tally()
        for _, rendered in self.results(group):
            tally.rendered += rendered
            tally.failed += not rendered
        tally.stopped = self.stop.is_set()
        return tally

    def results(self, group: Group) -> Iterator[tuple[Candidate, bool]]:
        """Yield each candidate as it got its image (True) or its failure (False).

        Ends when nothing of the group waits or `stop` is set. Raises PipelineError when the
        generator cannot work now; its candidates wait on.
        """
        handed: deque[_Handed] = deque()
        trouble: PipelineError | None = None
        try:
            self._hand_next(group, handed)
            while handed:
                if trouble is None:
                    # Now already, so that the device finds it when this batch ends. What is
                    # at the device is finished first, whatever is wrong with the next.
                    trouble = self._trouble_with_next(group, handed)
                for candidate, result in self._finished(handed[0]):
                    yield candidate, self._settle(candidate, result, handed[0].claim.token)
                if self.stop.is_set():  # the device began no further batch of it
                    patiently(partial(release_claim, token=handed[0].claim.token))
                self._note_pace(handed.popleft())
                if trouble is None and not handed:  # nothing was handed beside a suspect
                    trouble = self._trouble_with_next(group, handed)
        except PipelineError as error:
            self._give_back(handed, billed=isinstance(error, ErrorsInARow))
            raise
        finally:
            self._give_back(handed, billed=True)
            self.heart.doing = ""
        if trouble is not None:
            raise trouble

    # -- steps --------------------------------------------------------------------

    def _hand_next(self, group: Group, handed: deque[_Handed]) -> None:
        """Claim a batch and hand it to the device, unless enough are there or we are to stop."""
        # A paid source gets nothing ahead: what came of the last is known before more is spent.
        enough = 1 if self._is_paid else 2
        if self.stop.is_set() or len(handed) >= enough or any(h.claim.suspect for h in handed):
            return
        claim = patiently(partial(self._claim, group, self._claim_size(group)))
        if not claim.candidates:
            return
        first = claim.candidates[0]
        try:
            loaded = self._load(first.generator)
            settings = loaded.pipeline.spec.settings
            patiently(partial(check_budget, first.generator, settings))
        except BaseException:
            # Else the heart would keep them held as long as this process lives.
            patiently(partial(release_claim, token=claim.token))
            raise
        text = first.pair.generation_text(first.side)
        self.heart.doing = f"{first.generator.slug} · {first.pair.slug} · {first.side}"
        seeds = [candidate.seed for candidate in claim.candidates]
        batch = loaded.device.submit(text, seeds, self._encoder(text))
        handed.append(_Handed(claim, batch))

    def _trouble_with_next(self, group: Group, handed: deque[_Handed]) -> PipelineError | None:
        try:
            self._hand_next(group, handed)
        except PipelineError as error:
            return error
        return None

    @property
    def _is_paid(self) -> bool:
        loaded = self._loaded
        return loaded is not None and loaded.pipeline.spec.settings.price_per_image > 0

    def _claim_size(self, group: Group) -> int:
        if self._loaded is None or self._loaded.key[0] != group.generator_id:
            return 1
        # Of a paid source exactly what is asked for next: what is held counts as spent.
        size = self._loaded.batches.size
        return size if self._is_paid else max(size, self._loaded.pace.in_time(_CLAIMED_SECONDS))

    def _note_pace(self, handed: _Handed) -> None:
        """How long the device took, for the size of the next claims."""
        if self._loaded is not None and not self.stop.is_set():
            self._loaded.pace.note(handed.batch.seconds, len(handed.batch.seeds))

    def _claim(self, group: Group, size: int) -> Claim:
        now = timezone.now()
        return claim_batch(group=group, worker=self.name, limit=size, at=now, lease=LEASE)

    def _encoder(self, text: str) -> Callable[[Outcome], Future[Finished]]:
        """What sends an outcome for a text to the encoders."""
        shared = self._shared_provenance()
        return lambda outcome: self._encoders.submit(finish, outcome, text=text, shared=shared)

    def _finished(self, handed: _Handed) -> Iterator[tuple[Candidate, Finished]]:
        """Candidates with what became of them; encoding runs beside the device."""
        by_seed = {candidate.seed: candidate for candidate in handed.claim.candidates}
        for result in handed.batch.results():
            yield by_seed[result.seed], result

    def _settle(self, candidate: Candidate, result: Finished, token: str) -> bool:
        """Store an image, or fail its candidate: that one alone, whatever was wrong with it."""
        if isinstance(result, FinishedImage):
            try:
                self._keep(candidate, result, token)
            except away():
                raise
            except Exception as error:  # noqa: BLE001 - e.g. a text that the database refuses
                result = Unfinished(result.seed, error)
            else:
                self._unfinished.end()
                return True
        if isinstance(result, Unfinished):
            reason = self._unfinished.meet(result.error)
        else:
            reason = result.reason
        patiently(partial(fail_candidate, candidate=candidate, reason=reason, claim=token))
        return False

    def _keep(self, candidate: Candidate, image: FinishedImage, token: str) -> None:
        keep = partial(keep_image, candidate=candidate, claim=token, data=image.data)
        kept = patiently(partial(keep, provenance=image.provenance, derived=image.derived))
        self.heart.images_done += kept

    def _give_back(self, handed: deque[_Handed], *, billed: bool) -> None:
        """Release what was claimed and is not going to be rendered here.

        With ``billed`` a paid source may send a bill for what it was asked for: nobody saw its
        answer. A pipeline that ends a batch itself knows that there was none to pay for.
        """
        while handed:
            each = handed.popleft()
            each.batch.cancelled = True
            asked = billed and self._is_paid and each.batch.begun
            patiently(partial(release_claim, token=each.claim.token, asked=asked))

    # -- the pipeline, loaded once and kept while its generator has work ----------------

    def _load(self, generator: Generator) -> _Loaded:
        wanted = (generator.pk, generator.pipeline, generator.model_id, generator.revision)
        key = (*wanted, generator.active, repr(sorted(generator.settings.items())))
        if self._loaded is None or self._loaded.key != key:
            self._unload()
            self.heart.doing = f"loading {generator.slug}"
            pipeline = _ready(generator)
            batches = FittingBatches(pipeline)
            self._loaded = _Loaded(
                key, pipeline, batches, Device(batches, stopped=self.stop.is_set), _Pace()
            )
            self.heart.device = str(pipeline.describe().get("device", ""))
        return self._loaded

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded.device.close()
            self._loaded.pipeline.close()
            self._loaded = None

    def _shared_provenance(self) -> dict[str, object]:
        described = self._loaded.pipeline.describe() if self._loaded else {}
        return {**described, "worker": self.name}


@dataclass(frozen=True)
class _Loaded:
    key: tuple[object, ...]
    pipeline: Pipeline
    batches: FittingBatches
    device: Device
    pace: _Pace


class _Pace:
    """How many images a pipeline draws in a time, by the last ones."""

    def __init__(self) -> None:
        self._each: float | None = None

    def note(self, seconds: float, images: int) -> None:
        """So many images took so long."""
        self._each = seconds / max(images, 1)

    def in_time(self, seconds: float) -> int:
        """Images in this time, within the limits of a claim."""
        if self._each is None:
            return _CLAIMED_UNTRIED
        drawn = seconds / max(self._each, 1e-6)
        return int(min(max(drawn, 1), _CLAIMED_AT_MOST))


def _ready(generator: Generator) -> Pipeline:
    """A loaded pipeline for a row; raises PipelineError that names the generator."""
    if not generator.active:
        raise OutOfBudget(f"The generator {generator.slug} is switched off.")
    try:
        pipeline = build_pipeline(
            slug=generator.slug,
            pipeline=generator.pipeline,
            model_id=generator.model_id,
            revision=generator.revision,
            settings=generator.settings,
        )
        pipeline.load()
    except PipelineError:
        raise
    except ValueError as error:  # SettingsError is one
        raise PipelineError(f"{generator.slug}: {error}") from error
    except Exception as error:
        logger.exception("Loading %s", generator.slug)
        raise PipelineError(f"{generator.slug} cannot be loaded: {reason_of(error)}") from error
    logger.info("Loaded %s", generator.slug)
    return pipeline
