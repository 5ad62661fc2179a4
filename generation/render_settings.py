"""The settings of a Generator row: one typed place, loud about what it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

DTYPES = ("bfloat16", "float16", "float32")
OFFLOADS = ("none", "model", "sequential")
QUANTISATIONS = ("none", "bitsandbytes_4bit", "bitsandbytes_8bit", "torchao_int8")


class SettingsError(ValueError):
    """A Generator row holds a setting that cannot be used; names the key."""


@dataclass(frozen=True)
class RenderSettings:
    """How a generator draws. A pipeline reads what concerns it."""

    # The picture
    width: int = 1024
    height: int = 1024
    steps: int = 28
    guidance: float = 3.5
    max_sequence_length: int = 256
    negative_prompt: str = ""
    # The device
    dtype: str = "bfloat16"
    device: str = "auto"
    batch_size: int = 4
    compile: bool = False
    first_block_cache: float | None = None  # threshold, e.g. 0.08; trades fidelity for speed
    offload: str = "none"
    quantisation: str = "none"
    # Drawn scenes: the share of images that deliberately show the wrong thing
    error_rate: float = 0.25
    # Image APIs
    base_url: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    quality: str = ""
    requests_per_minute: float = 10.0
    price_per_image: float = 0.0
    max_spend: float = 0.0
    timeout: float = 120.0
    max_retries: int = 6
    # Further keyword arguments of the pipeline's call, passed on as they are
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_ranges(self)

    def as_json(self) -> dict[str, object]:
        """The settings as JSON values, for provenance; holds no secret."""
        return {**asdict(self), "extra": dict(self.extra)}


def parse_settings(
    given: Mapping[str, object], *, defaults: Mapping[str, object] | None = None
) -> RenderSettings:
    """Read a row's settings over a pipeline's defaults; raise SettingsError on any doubt."""
    known = {f.name: f for f in fields(RenderSettings)}
    merged = {**(defaults or {}), **given}
    unknown = sorted(set(merged) - set(known))
    if unknown:
        raise SettingsError(
            f"Unknown setting {', '.join(unknown)}. Known: {', '.join(sorted(known))}. "
            "Keyword arguments of the pipeline's own call go under 'extra'."
        )
    return replace(RenderSettings(), **{key: _typed(key, value) for key, value in merged.items()})


def _typed(key: str, value: object) -> Any:
    sample = getattr(RenderSettings(), key)
    if key == "first_block_cache":
        return None if value is None else _number(key, value)
    if key == "extra":
        return _mapping(key, value)
    if isinstance(sample, bool):
        return _exactly(key, value, bool)
    if isinstance(sample, int):
        return _exactly(key, value, int)
    if isinstance(sample, float):
        return _number(key, value)
    return _exactly(key, value, str)


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingsError(f"Setting {key} must be a number, not {value!r}.")
    return float(value)


def _mapping(key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"Setting {key} must be an object, not {value!r}.")
    return dict(value)


def _exactly(key: str, value: object, kind: type) -> object:
    # bool is an int in Python; a batch size of True is a mistake
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SettingsError(f"Setting {key} must be {kind.__name__}, not {value!r}.")
    return value


def _check_choices(settings: RenderSettings) -> None:
    for key, choices in (
        ("dtype", DTYPES),
        ("offload", OFFLOADS),
        ("quantisation", QUANTISATIONS),
    ):
        if getattr(settings, key) not in choices:
            raise SettingsError(
                f"Setting {key} is {getattr(settings, key)!r}; possible: {', '.join(choices)}."
            )


def _check_ranges(settings: RenderSettings) -> None:
    for key in ("width", "height", "steps", "max_sequence_length", "batch_size"):
        if getattr(settings, key) < 1:
            raise SettingsError(f"Setting {key} must be at least 1.")
    if not 0 <= settings.error_rate <= 1:
        raise SettingsError("Setting error_rate must lie between 0 and 1.")
    for key in ("requests_per_minute", "timeout"):
        if getattr(settings, key) <= 0:
            raise SettingsError(f"Setting {key} must be above 0.")
    for key in ("price_per_image", "max_spend", "max_retries"):
        if getattr(settings, key) < 0:
            raise SettingsError(f"Setting {key} must not be negative.")
