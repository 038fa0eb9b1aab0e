"""What SQLite itself says of its file: tables can be read whole while the index beside them is spoilt."""

import sqlite3
from contextlib import closing
from pathlib import Path

#: One is enough to say that the file is damaged; SQLite would list a hundred.
_CHECK = "PRAGMA integrity_check(1)"


def damage(path: Path) -> str | None:
    """The first fault in the SQLite file, in SQLite's words: a spoilt page, or an index that misses a row. None if sound.

    Raises `sqlite3.OperationalError` for a file that cannot be opened.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        try:
            [(said,)] = connection.execute(_CHECK).fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            said = str(error)
    return None if said == "ok" else str(said)[:200]
