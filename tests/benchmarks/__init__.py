"""Measurements, run by `make bench`: ratios against a peer or a limit taken in the same run."""
