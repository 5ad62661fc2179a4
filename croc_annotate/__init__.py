"""CROC Annotate: contrast pairs made, verified by people and used to score metrics."""

__version__ = "0.1.0"
