"""Which metrics there are: one line each, loaded only when asked for.

Three ways to name a metric: a name of `METRICS`, a name that an installed package declares under
the entry point group `croc_annotate.metrics`, or `package.module:Class`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from croc_annotate.benchmark.metric import Metric, MetricError, MetricOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRY_POINT_GROUP = "croc_annotate.metrics"

_HERE = "croc_annotate.benchmark.metrics"

METRICS: Mapping[str, str] = {
    "random": f"{_HERE}.random:RandomMetric",
    "human": f"{_HERE}.human:HumanMetric",
    "clipscore": f"{_HERE}.clipscore:ClipScore",
    "siglip": f"{_HERE}.siglip:SiglipScore",
    "alignscore": f"{_HERE}.alignscore:AlignScore",
    "pickscore": f"{_HERE}.pickscore:PickScore",
    "blip2-itm": f"{_HERE}.blip2_itm:Blip2Itm",
    "vqascore": f"{_HERE}.vqascore:VqaScore",
    "clip-flant5": f"{_HERE}.clip_flant5:ClipFlanT5",
    "crocscore": f"{_HERE}.crocscore:CrocScore",
    "bvqa-hf": f"{_HERE}.bvqa:BlipVqa",
    "vqascore-openai": f"{_HERE}.vqascore_openai:VqaScoreOpenAi",
    "onnx-dual-encoder": f"{_HERE}.onnx_dual_encoder:OnnxDualEncoder",
}


def names() -> list[str]:
    """Names that `create` knows: our own in order, then those of installed packages."""
    return [*METRICS, *sorted(set(_third_party()) - set(METRICS))]


def create(name: str, *, options: MetricOptions | None = None) -> Metric:
    """Build the metric of this name; raises MetricError with one sentence if that cannot be."""
    factory = _factory(name)
    _check_signature(factory, name)
    metric = factory(options=options or MetricOptions())
    if not isinstance(metric, Metric):
        raise MetricError(
            f"Metric {name!r} lacks one of needs, describe, score, close (see docs/adding-a-metric.md)."
        )
    return metric


def _third_party() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _factory(name: str) -> Any:
    if name in METRICS:
        return _load(METRICS[name], name)
    found = _third_party().get(name)
    if found is not None:
        return _load(found.value, name)
    if ":" in name:
        return _load(name, name)
    close = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(names())}."
    raise MetricError(f"There is no metric {name!r}; {hint}")


def _check_signature(factory: Any, name: str) -> None:
    try:
        inspect.signature(factory).bind(options=None)
    except TypeError as error:
        raise MetricError(
            f"Metric {name!r} cannot be built with the one argument `options`: {error}."
        ) from error


def _load(path: str, name: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise MetricError(_missing(name, module_name, error.name or "")) from error
    if not hasattr(module, attribute):
        raise MetricError(f"Metric {name!r}: {module_name} has no {attribute!r}.")
    return getattr(module, attribute)


def _missing(name: str, module_name: str, package: str) -> str:
    if package and (module_name == package or module_name.startswith(f"{package}.")):
        return f"Metric {name!r}: there is no module {package!r} on the Python path."
    extra = "onnx" if package in {"onnxruntime", "tokenizers"} else "gpu"
    return (
        f"Metric {name!r} needs the package {package!r}: "
        f"pip install 'croc-annotate[{extra}]' (or {package} itself)."
    )
