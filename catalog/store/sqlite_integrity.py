"""SQLite's integrity check, which finds damaged indexes even where tables are readable."""

import sqlite3
from contextlib import closing
from pathlib import Path

#: One fault shows that the file is damaged; SQLite would list a hundred.
_CHECK = "PRAGMA integrity_check(1)"


def damage(path: Path) -> str | None:
    """The first fault in the SQLite file, in SQLite's words (a damaged page, an index that misses a row), or None.

    Raises `sqlite3.OperationalError` if the file cannot be opened.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        try:
            [(report,)] = connection.execute(_CHECK).fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            report = str(error)
    return None if report == "ok" else str(report)[:200]
