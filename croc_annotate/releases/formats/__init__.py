"""The formats of a release. A new one is one file and one line here (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from croc_annotate.releases.formats.crochum import CrochumFormat
from croc_annotate.releases.formats.imagefolder import ImageFolderFormat
from croc_annotate.releases.formats.parquet import ParquetFormat
from croc_annotate.releases.formats.sft import SftFormat
from croc_annotate.releases.formats.webdataset import WebDatasetFormat

if TYPE_CHECKING:
    from croc_annotate.releases.formats.base import Format

FORMATS: dict[str, Format] = {
    "crochum": CrochumFormat(),
    "imagefolder": ImageFolderFormat(),
    "parquet": ParquetFormat(),
    "webdataset": WebDatasetFormat(),
    "sft": SftFormat(),
}
