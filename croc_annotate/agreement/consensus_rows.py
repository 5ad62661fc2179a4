"""Keep the state of each item in rows, for filters and queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.agreement.models import ItemConsensus
from croc_annotate.lib.analyse import MANY, analyse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from croc_annotate.agreement.modelling import ConsensusTable
    from croc_annotate.annotation.models import Campaign

# Items that are compared and written together: memory does not grow with the campaign.
_BLOCK = 20_000
_FIELDS = (
    "state", "verified_by", "n_accept", "n_reject", "n_unsure", "posterior", "complete",
)  # fmt: skip


def store_consensus(campaign: Campaign, table: ConsensusTable, *, begun: datetime) -> int:
    """Bring ItemConsensus in line with ``table``; writes changed rows only, returns how many.

    A row that a reviewer's act changed after ``begun``, when the judgements were read, is newer
    than the table and stays.
    """
    written = 0
    for start in range(0, table.item_id.size, _BLOCK):
        changed = list(_changed(campaign, table, slice(start, start + _BLOCK), begun))
        ItemConsensus.objects.bulk_create(
            changed,
            batch_size=2_000,
            update_conflicts=True,
            unique_fields=["item"],
            update_fields=list(_FIELDS),
        )
        written += len(changed)
    if written >= MANY:
        # Until it knows how many rows there are, the planner reads all of them for each page.
        analyse(ItemConsensus)
    return written


def _changed(
    campaign: Campaign, table: ConsensusTable, block: slice, begun: datetime
) -> Iterator[ItemConsensus]:
    """The rows of a block of items (they stand in the order of their ids) that are not stored so."""
    items = table.item_id[block].tolist()
    stored = ItemConsensus.objects.filter(
        campaign=campaign, item_id__gte=items[0], item_id__lte=items[-1]
    )
    old = {row[0]: row[1:] for row in stored.values_list("item_id", *_FIELDS)}
    newer = set(stored.filter(reviewed_at__gte=begun).values_list("item_id", flat=True))
    roles, candidates = table.text_role[block].tolist(), table.candidate_id[block].tolist()
    rows = zip(items, candidates, roles, _values(table, block), strict=True)
    for item, candidate, role, values in rows:
        if old.get(item) != values and item not in newer:
            yield ItemConsensus(
                item_id=item, campaign=campaign, candidate_id=candidate, text_role=role,
                **dict(zip(_FIELDS, values, strict=True)),
            )  # fmt: skip


def _values(table: ConsensusTable, block: slice) -> Iterator[tuple[object, ...]]:
    """The values of each item's row, in the order of the fields."""
    posterior = [
        None if value != value else value for value in np.round(table.posterior[block], 3).tolist()
    ]
    columns = [
        table.state, table.verified_by, table.n_accept, table.n_reject, table.n_unsure,
    ]  # fmt: skip
    listed = [column[block].tolist() for column in columns]
    return zip(*listed, posterior, table.complete[block].tolist(), strict=True)
