"""Keep the state of each item in rows, for filters and queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from croc_annotate.agreement.models import ItemConsensus

if TYPE_CHECKING:
    from croc_annotate.agreement.modelling import ConsensusTable
    from croc_annotate.annotation.models import Campaign


def store_consensus(campaign: Campaign, table: ConsensusTable) -> int:
    """Bring ItemConsensus in line with ``table``; writes changed rows only, returns how many."""
    posterior = np.round(table.posterior, 3)
    old = {
        row[0]: row[1:]
        for row in ItemConsensus.objects.filter(campaign=campaign).values_list(
            "item_id", "state", "verified_by", "n_accept", "n_reject", "n_unsure", "posterior",
            "complete",
        )
    }  # fmt: skip
    columns = [
        table.state, table.verified_by, table.n_accept, table.n_reject, table.n_unsure,
        posterior, table.complete,
    ]  # fmt: skip
    listed = [column.tolist() for column in columns]
    listed[5] = [None if value != value else value for value in listed[5]]
    new = zip(*listed, strict=True)
    roles, candidates = table.text_role.tolist(), table.candidate_id.tolist()
    changed = [
        ItemConsensus(
            item_id=item, campaign=campaign, candidate_id=candidate, text_role=role,
            state=values[0], verified_by=values[1], n_accept=values[2], n_reject=values[3],
            n_unsure=values[4], posterior=values[5], complete=values[6],
        )
        for item, candidate, role, values in zip(
            table.item_id.tolist(), candidates, roles, new, strict=True
        )
        if old.get(item) != values
    ]  # fmt: skip
    ItemConsensus.objects.bulk_create(
        changed,
        batch_size=2_000,
        update_conflicts=True,
        unique_fields=["item"],
        update_fields=[
            "state", "verified_by", "n_accept", "n_reject", "n_unsure", "posterior", "complete",
        ],
    )  # fmt: skip
    return len(changed)
