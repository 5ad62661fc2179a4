"""``python -m tests.agreement.plot_calibration``: draw docs/images/posterior_calibration.svg again."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from croc_annotate.agreement.dawid_skene import fit
from tests.agreement.simulate import simulate

TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "posterior_calibration.svg"


def simulated() -> tuple[np.ndarray, np.ndarray]:
    """Posterior and truth of 100,000 items with three judgements, from 20 campaigns."""
    posterior, truth = [], []
    for seed in range(20):
        sim = simulate(200 + seed, items=5000, raters=20)
        posterior.append(fit(sim.votes).posterior)
        truth.append(sim.truth)
    return np.concatenate(posterior), np.concatenate(truth)


def main() -> None:
    """Draw stated against found shares in twenty classes, and print the claim at 0.95."""
    posterior, truth = simulated()
    sure = posterior >= 0.95
    print(f"P >= 0.95: {sure.sum():,} items, stated {posterior[sure].mean():.4f}, "
          f"right {truth[sure].mean():.4f}")  # fmt: skip
    place = np.minimum((posterior * 20).astype(int), 19)
    n = np.bincount(place, minlength=20)
    stated = np.bincount(place, weights=posterior, minlength=20) / n
    found = np.bincount(place, weights=truth, minlength=20) / n
    error = 1.96 * np.sqrt(found * (1 - found) / n)
    plt.rcParams.update({"svg.hashsalt": "croc", "font.size": 10})
    figure, axes = plt.subplots(figsize=(4.6, 4.2))
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1)
    axes.errorbar(stated, found, yerr=error, fmt="o", markersize=4, color="#17684b")
    axes.set(xlabel="stated P(match)", ylabel="share of matches", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("20 simulated campaigns, 100,000 items, 3 judgements", fontsize=10)
    figure.tight_layout()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
