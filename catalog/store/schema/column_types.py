"""Column types of gpuplan's tables, and their shared metadata."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcMicros(TypeDecorator[datetime]):
    """An aware time as microseconds since 1970 in UTC: exact, and identical on every database.

    Raises `ValueError` for a time without a zone.
    """

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        """The stored form of the time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        """The stored number as an aware UTC time."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class Ratio(TypeDecorator[Fraction]):
    """An exact fraction as text, `1/4` or `8`: an accelerator count may be part of a card."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Fraction | None, dialect: sa.Dialect) -> str | None:
        """The stored form of the fraction."""
        return None if value is None else str(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Fraction | None:
        """The stored text as a fraction."""
        return None if value is None else Fraction(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts as a JSON array."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: sa.Dialect) -> str | None:
        """The stored form of the texts."""
        return None if value is None else json.dumps(value, ensure_ascii=False)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> tuple[str, ...] | None:
        """The stored array as a tuple."""
        if value == "[]":  # the usual case, in a tenth of a parser's time
            return ()
        return None if value is None else tuple(json.loads(value))


class JsonText(str):
    """A document that is encoded already."""

    __slots__ = ()


#: Without blanks, like responses: a stored plan has the bytes that its client received.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_json(document: object) -> JsonText:
    """The document as JSON text. Raises `ValueError` for NaN and infinity, `TypeError` for other unsupported values."""
    return JsonText(_ENCODER.encode(document))


class Json(TypeDecorator[Any]):
    """A JSON document as text; raises what `as_json` raises."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: sa.Dialect) -> str | None:
        """The stored form of the document."""
        return None if value is None else str(value if isinstance(value, JsonText) else as_json(value))

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        """The document of the stored text."""
        return None if value is None else json.loads(value)


metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def text(name: str, **options: Any) -> sa.Column[str]:
    """A text column that is never NULL."""
    return sa.Column(name, sa.Text, nullable=False, **options)


def document(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """A column of JSON documents."""
    return sa.Column(name, Json, nullable=nullable)
