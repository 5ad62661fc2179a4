"""crowd-kit's Dawid–Skene on a table of votes; run by a Python of its own, where it is installed.

``python crowdkit_peer.py VOTES.npz POSTERIOR.npy`` prints seconds, peak MB and the version as JSON.
"""

from __future__ import annotations

import importlib.metadata
import json
import resource
import sys
import time

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene


def main() -> None:
    """Fit as it comes, tell, and keep P(match) of each item."""
    votes = np.load(sys.argv[1])
    frame = pd.DataFrame(
        {"task": votes["item"], "worker": votes["rater"], "label": votes["vote"].astype(int)}
    )
    start = time.perf_counter()
    DawidSkene(n_iter=100).fit(frame)
    took = time.perf_counter() - start
    # Its own tolerance stops early: the values to compare come from a fit to the end.
    probabilities = DawidSkene(n_iter=1000, tol=1e-9).fit(frame).probas_.sort_index()
    np.save(sys.argv[2], probabilities[1].to_numpy())
    facts = {
        "seconds": took,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "version": importlib.metadata.version("crowd-kit"),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
