"""Tables by the types of their rows: columns, placeholders and conversion follow from a dataclass or a named tuple.

One `Table` serves both databases. A field that is a dataclass itself becomes its own columns, an enum its value, a bool
a number; fields that columns cannot hold are JSON. SQL is put together from these names, never from values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, get_type_hints

Row = Sequence[Any]
_Kind = TypeVar("_Kind")
ROW_MAX: Final = 1 << 62
"""Row numbers stay below it (`rgs.store.numbers`), and so does every position in a page token."""
_TYPES: Final = {int: "bigint", bool: "bigint", bytes: "bytea"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `path` leads from the row's value to what stands in it; `type` is what PostgreSQL calls it."""

    name: str
    path: str = ""
    type: str = "bigint"


@dataclass(frozen=True, slots=True)
class JsonField:
    """How a field becomes the text of its column, and how it is read again."""

    dump: Callable[[Any], str]
    load: Callable[[str], Any]


class Table(Generic[_Kind]):
    """One table, the rows of which are of one type with two fields or more."""

    def __init__(
        self,
        name: str,
        kind: type[_Kind],
        *,
        key: Sequence[str] = (),
        fixed: Sequence[str] = (),
        beside: Sequence[str] = (),
        prefixes: Mapping[str, str] | None = None,
        json: Mapping[str, JsonField] | None = None,
        is_numbered: bool = False,
    ) -> None:
        """`key` and `fixed` columns never change. `beside` columns are read here and written by other statements.

        `prefixes` stand before the columns of a field that is a dataclass. A numbered table has a row number `id`: the
        last column of what is selected.
        """
        self.name = name
        self.key = tuple(key)
        self._kind = kind
        self._prefixes = prefixes or {}
        self._json = json or {}
        self._made: list[tuple[int, int, Callable[..., Any]]] = []
        self.columns = self._columns_of(kind, "", "", 0)
        # From the last to the first, and what is inside another before it: so no conversion moves what is to come.
        self._made.sort(key=lambda made: (-made[0], made[1]))
        unknown = {*key, *fixed, *beside} - {column.name for column in self.columns}
        if unknown:
            raise ValueError(f"table {name} has no column {min(unknown)}")
        self.written = tuple(column for column in self.columns if column.name not in beside)
        by_name = {column.name: column for column in self.written}
        changing = [name for name in by_name if name not in {*self.key, *fixed}]
        self.changing = tuple(by_name[name] for name in changing)
        self.moved = (*self.changing, *(by_name[name] for name in self.key))
        """What a change of a row carries: the columns that may change, and the key."""
        self.row = self._getter(self.written)
        """The values of `written`, in order."""
        self.change = self._getter(self.moved)
        """The values of `moved`, in order."""
        numbered = [Column("id")] if is_numbered else []
        self.select: Final = "SELECT " + listed((*self.columns, *numbered)) + " FROM " + name + " "  # noqa: S608
        self.insert: Final = self.insert_behind()
        """The insert of a row, from `row`."""

    def insert_behind(self, *more: str) -> str:
        """The insert of a row behind the values of these other columns."""
        columns = [*more, *(column.name for column in self.written)]
        return "".join(
            ["INSERT INTO ", self.name, " (", ", ".join(columns), ") VALUES (", ", ".join("?" * len(columns)), ")"]
        )

    def upsert(self) -> str:
        """The insert of a row that takes the place of the one with its key."""
        taken = [column.name + " = excluded." + column.name for column in self.changing]
        return self.insert + self._on_conflict(taken)

    def adding(self) -> str:
        """What stands behind an insert whose numbers are added to those of the row with its key."""
        return self._on_conflict(
            [f"{column.name} = {self.name}.{column.name} + excluded.{column.name}" for column in self.changing]
        )

    def update(self, *, within: Sequence[str] = (), is_versioned: bool = False) -> str:
        """The update of a row from `change`. A row in which a column of `within` has another value stays as it is, and
        where the table is versioned one that is not a version below.
        """
        number = {column.name: "?" + str(place) for place, column in enumerate(self.moved, 1)}
        taken = [column.name + " = " + number[column.name] for column in self.changing if column.name not in within]
        found = [name + " = " + number[name] for name in (*self.key, *within)]
        if is_versioned:
            found.append("version + 1 = " + number["version"])
        return "".join(["UPDATE ", self.name, " SET ", ", ".join(taken), " WHERE ", " AND ".join(found)])

    def read(self, row: Row) -> _Kind:
        """The value of a row of `select`."""
        values = list(row[: len(self.columns)])
        for first, end, make in self._made:
            values[first:end] = [make(*values[first:end])]
        return self._kind(*values)

    def _on_conflict(self, taken: Sequence[str]) -> str:
        return "".join([" ON CONFLICT (", ", ".join(self.key), ") DO UPDATE SET ", ", ".join(taken)])

    def _columns_of(self, kind: type[Any], prefix: str, path: str, first: int) -> tuple[Column, ...]:
        hints = get_type_hints(kind)
        columns: list[Column] = []
        for name in kind.__match_args__:  # the fields of a dataclass, or of a named tuple
            hint, at = hints[name], first + len(columns)
            make: Callable[..., Any] | None = None
            if name in self._json:
                columns.append(Column(prefix + name, path + name, "text"))
                make = self._json[name].load
            elif isinstance(hint, type) and is_dataclass(hint):
                columns += self._columns_of(hint, self._prefixes.get(name, ""), path + name + ".", at)
                make = hint
            elif isinstance(hint, type) and issubclass(hint, Enum):
                columns.append(Column(prefix + name, path + name + ".value", "text"))
                make = hint
            else:
                columns.append(Column(prefix + name, path + name, _TYPES.get(hint, "text")))
                make = bool if hint is bool else None
            if make is not None:
                self._made.append((at, first + len(columns), make))
        return tuple(columns)

    def _getter(self, columns: Sequence[Column]) -> Callable[[_Kind], tuple[Any, ...]]:
        values_of: Callable[[_Kind], tuple[Any, ...]] = attrgetter(*(column.path for column in columns))
        dumps = [(at, self._json[column.name].dump) for at, column in enumerate(columns) if column.name in self._json]
        if not dumps:
            return values_of

        def row_of(value: _Kind) -> tuple[Any, ...]:
            values = list(values_of(value))
            for at, dump in dumps:
                values[at] = dump(values[at])
            return tuple(values)

        return row_of


def listed(columns: Sequence[Column]) -> str:
    """Their names, with commas."""
    return ", ".join(column.name for column in columns)
