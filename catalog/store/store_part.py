"""A part of the store: its methods are one transaction each."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, Protocol

import sqlalchemy as sa

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


class Transactions(Protocol):
    """What begins transactions: the store, and its parts."""

    def _reading(self) -> AbstractContextManager[sa.Connection]: ...

    def _writing(self) -> AbstractContextManager[sa.Connection]: ...


class StorePart:
    """Some tables of the store. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """Uses the store's functions that begin transactions."""
        self._reading = reading
        self._writing = writing


def reads[**P, R](function: Callable[Concatenate[sa.Connection, P], R]) -> Callable[Concatenate[Transactions, P], R]:
    """The function as a method that runs it in a transaction of its own, which only reads."""

    @wraps(function)
    def method(part: Transactions, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with part._reading() as connection:
            return function(connection, *args, **kwargs)

    return method


def writes[**P, R](function: Callable[Concatenate[sa.Connection, P], R]) -> Callable[Concatenate[Transactions, P], R]:
    """The function as a method that runs it in a transaction of its own, which writes."""

    @wraps(function)
    def method(part: Transactions, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with part._writing() as connection:
            return function(connection, *args, **kwargs)

    return method
