"""curl and openssl for machines that have none: the options that the pages use, and no others."""

import argparse
import base64
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

_START = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.docs.stand_ins import {name}
{name}()
"""


def curl() -> None:
    """`curl -s URL -H 'NAME: VALUE' -d BODY`."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    given = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in given.H)
    answer = httpx.request(
        "GET" if given.d is None else "POST", given.url, headers=headers, content=given.d, timeout=60
    )
    sys.stdout.write(answer.text)


def openssl() -> None:
    """`openssl rand -base64 N`, `openssl rand -hex N`."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=["rand"])
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("-base64", type=int)
    kind.add_argument("-hex", type=int)
    given = parser.parse_args()
    number = secrets.token_bytes(given.base64 or given.hex)
    sys.stdout.write((base64.b64encode(number).decode() if given.base64 else number.hex()) + "\n")


STAND_INS: tuple[Callable[[], None], ...] = (curl, openssl)


def put_into(folder: Path, root: Path) -> None:
    """Programs of these names, for those that this machine has not."""
    folder.mkdir()
    for stand_in in STAND_INS:
        if shutil.which(stand_in.__name__) is None:
            write(folder, root, stand_in.__name__)


def write(folder: Path, root: Path, name: str) -> Path:
    path = folder / name
    path.write_text(_START.format(python=sys.executable, root=str(root), name=name), encoding="utf-8")
    path.chmod(0o755)
    return path
