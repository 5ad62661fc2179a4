"""Model instances made straight from rows.

`Model.__init__` sets each field through its descriptor and sends two signals. For a row of the
database nothing of that is needed where the model has neither an ``__init__`` of its own nor a
listener: the values go into the instance as they are. Columns
that were not read stay deferred, as always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db.models import Model
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

M = TypeVar("M", bound=Model)


class RowReader(Generic[M]):
    """How the rows of one compiled queryset become instances."""

    def __init__(self, compiler: Any) -> None:
        self._make = _Maker(compiler.klass_info, compiler.select)
        self._annotations = list((compiler.annotation_col_map or {}).items())
        columns = [column[0] for column in compiler.select[: compiler.col_count]]
        self._converters = [
            (i, convert, column)
            for i, (converters, column) in compiler.get_converters(columns).items()
            for convert in converters
        ]

    def read(self, raw: Sequence[Any], db: BaseDatabaseWrapper) -> M:
        """The instance of one fetched row, with its related ones."""
        row = list(raw)
        for i, convert, column in self._converters:
            row[i] = convert(row[i], column, db)
        made: M = self._make(row, db.alias)
        for name, i in self._annotations:
            setattr(made, name, row[i])
        return made


class _Maker:
    """One model among a row's columns, and the models that hang on it."""

    def __init__(self, info: dict[str, Any], select: Sequence[Any]) -> None:
        fields = info["select_fields"]
        self.model: type[Model] = info["model"]
        self.first, self.last = fields[0], fields[-1] + 1
        self.names = [s[0].target.attname for s in select[self.first : self.last]]
        self.key = self.first + self.names.index(self.model._meta.pk.attname)
        self.plain = (
            self.model.__init__ is Model.__init__
            and not pre_init.has_listeners(self.model)
            and not post_init.has_listeners(self.model)
        )
        self.related: list[tuple[_Maker, Callable[..., None], Callable[..., None]]] = [
            (_Maker(part, select), part["local_setter"], part["remote_setter"])
            for part in info.get("related_klass_infos", ())
        ]

    def __call__(self, row: Sequence[Any], alias: str) -> Any:
        """The instance; None where an outer join found nothing."""
        if row[self.key] is None:
            return None
        values = row[self.first : self.last]
        if self.plain:
            made = self.model.__new__(self.model)
            made.__dict__.update(zip(self.names, values, strict=True))
            made._state = state = ModelState()
            state.adding, state.db = False, alias
        else:
            made = self.model.from_db(alias, self.names, values)
        for maker, set_here, set_there in self.related:
            other = maker(row, alias)
            set_here(made, other)
            if other is not None:
                set_there(other, made)
        return made
