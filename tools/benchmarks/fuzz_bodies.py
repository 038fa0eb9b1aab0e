"""Documents that are meant to break who reads them, each made from a real one and a number: the same ones every time.

A body is a real document with a few of its parts replaced, moved, dropped or doubled, or a tree of anything, written as
JSON or YAML; and one in four has its text spoilt as well.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

JSON, YAML = "application/json", "application/yaml"
#: How many parts of a document change at once: one is what the rest of the document does not hide.
_CHANGES_AT_ONCE = (1, 1, 1, 2, 3)

#: Values where a field expects something else, or the last of what it accepts.
HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        -0.0,
        0.1,
        1e-320,
        1e18,
        1e19,
        1e308,
        -1e308,
        2**31,
        2**53 + 1,
        2**63,
        2**64,
        10**39,
    ),
    *(10**400, float("inf"), float("-inf"), float("nan")),
    *([], {}, [[]], [None], [{}], {"": ""}, {"kind": None}, [0] * 1_000, list("abc"), {"a": {"b": {"c": [1]}}}),
    *(
        "",
        " ",
        "\t",
        "\n",
        "0",
        "-1",
        "-0h",
        "1e999",
        "1e999999999d",
        "9" * 59,
        "9" * 60 + "h",
        "1e-9999h",
        "NaN",
        "inf",
    ),
    *("1h1h", "7d7d", "P1W", "P9999999W", "PT0S", "1_0h", "1,000h", "1,00h", "٣d", "½h", "²", "1e3e3", "0x10", "1 000"),
    *("80 GiB GiB", "-80 GiB", "1e300 TiB", "$", "$-1", "$1e400", "5 %", "101%", "-1%", "1/0", "300 B", "300BB", "∞"),
    *("2026-02-30", "2026-11-21T25:00Z", "9999-12-31T23:59:59Z", "0001-01-01", "2026-11-21T12:00+99:99", "24:00"),
    *(
        "*",
        "**",
        "?",
        "[",
        "[a",
        "[!",
        "us-[",
        "us-*" * 50,
        "aws:",
        ":",
        "::",
        "aws:*",
        "azure:us*:x",
        "local",
        "H100;DROP",
    ),
    *(
        "../../etc/passwd",
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "${jndi:ldap://x}",
        "{{7*7}}",
        "%s%n%d",
        "{0}{x!r}",
    ),
    *(
        "<script>alert(1)</script>",
        "=1+1",
        "@x",
        "<!channel>",
        "a\r\nSet-Cookie: x=1",
        "\u202e",
        "\u0000",
        "\ufeff",
        "\ud800",
    ),
    *(
        "é" * 2_000,
        "x" * 100_000,
        "\U0001f600" * 50,
        "a" * 101,
        "ﬀ",
        "ı",
        "İ",
        "ß",
        "\u2028",
        "__proto__",
        "constructor",
    ),
)
KEYS = (
    "",
    "x",
    "__class__",
    "__proto__",
    "<<",
    "*",
    "a/b",
    "a~b",
    "kind",
    "job",
    "jobs",
    "workload",
    "é",
    "k" * 5_000,
    "\n",
)

#: Pieces that are put into a text somewhere.
PIECES = (
    *(
        "&a ",
        "*a ",
        "!!python/object/apply:os.system ['true'] ",
        "!!binary ",
        "!x ",
        "<<: *a\n",
        "<<: {a: 1}\n",
        "? ",
        "---\n",
    ),
    *(
        "...\n",
        "%YAML 9.9\n",
        "%TAG ! x\n",
        "\t",
        "\r",
        "\x00",
        "\x1b[31m",
        "\x85",
        "\u2028",
        "\ufeff",
        "|\n",
        ">\n",
        "#",
        "{{",
        "}}",
    ),
    *(
        "[" * 40,
        "[" * 20_000,
        '{"a":' * 40,
        '{"a":' * 3_000,
        "- " * 5_000,
        "]" * 100,
        "'",
        '"',
        "\\",
        "\\ud800",
        "\\u0000",
        ": ",
    ),
    *(
        "NaN",
        "Infinity",
        "-",
        "1e999",
        "9" * 5_000,
        "0" * 5_000 + "1",
        ".inf",
        ".nan",
        "~",
        "null",
        "no",
        "0o17",
        "0x1F",
        "1:30",
    ),
)
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What is sent."""

    content: bytes
    content_type: str


def body(seed: int, number: int, real: Sequence[Any]) -> Body:
    """The `number`-th body of this seed, made from one of the `real` documents."""
    chance = random.Random(f"{seed} {number}")
    document = changed(chance, chance.choice(real), real) if chance.random() < 0.9 else tree(chance, 4)
    as_json = chance.random() < 0.6
    content = written(document, as_json=as_json)
    if chance.random() < 0.25:
        content = spoilt(chance, content)
    return Body(content=content, content_type=JSON if as_json != (chance.random() < 0.05) else YAML)


def written(document: Any, *, as_json: bool) -> bytes:
    """The document as text; half of a surrogate pair stays an escape in JSON, and is no UTF-8 in YAML."""
    if as_json:
        return json.dumps(document).encode()
    text: str = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    return text.encode("utf-8", "surrogatepass")


def changed(chance: random.Random, document: Any, others: Sequence[Any]) -> Any:
    """The document with one change or a few; its own values stay as they are."""
    changed_document = json.loads(json.dumps(document))
    for _ in range(chance.choice(_CHANGES_AT_ONCE)):
        places = list(_places(changed_document))
        if not places:
            break
        holder, key = chance.choice(places)
        chance.choice(_CHANGES)(chance, holder, key, others)
    return changed_document


def tree(chance: random.Random, depth: int) -> Any:
    """Anything: mappings, lists and hostile values, not deeper than `depth`."""
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(HOSTILE)
    if chance.random() < 0.3:
        return [tree(chance, depth - 1) for _ in range(chance.randint(0, 4))]
    return {chance.choice(KEYS): tree(chance, depth - 1) for _ in range(chance.randint(0, 5))}


def spoilt(chance: random.Random, content: bytes) -> bytes:
    """The text, cut, doubled, with a piece put in or with bytes that are none of UTF-8."""
    at = chance.randrange(len(content) + 1)
    match chance.randrange(7):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        case 2:
            return content + b"\n" + content
        case 3:
            return content.decode("utf-8", "replace").encode(chance.choice(["utf-16", "utf-32", "utf-7", "utf-8-sig"]))
        case 4:
            return LAUGHS.encode() + content
        case 5:
            return content.replace(b": ", chance.choice([b": &a ", b": *a ", b": !!str ", b":"]), 1)
    return content[:at] + chance.choice(PIECES).encode("utf-8", "surrogatepass") + content[at:]


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every mapping and list with each of its keys, however deep."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def _replace(chance: random.Random, holder: Any, key: Any, _: Sequence[Any]) -> None:
    # A copy: what is changed further must not change what others are given, nor come to hold itself.
    holder[key] = copy.deepcopy(chance.choice(HOSTILE))


def _scale(chance: random.Random, holder: Any, key: Any, _: Sequence[Any]) -> None:
    value = holder[key]
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        holder[key] = value * 10.0 ** chance.randint(-30, 30)
    else:
        holder[key] = f"{value}{chance.choice(['0', 'e9', ' h', ' GiB', '%', ' ', '*', '-'])}"[:10_000]


def _drop(_: random.Random, holder: Any, key: Any, __: Sequence[Any]) -> None:
    del holder[key]


def _wrap(chance: random.Random, holder: Any, key: Any, _: Sequence[Any]) -> None:
    holder[key] = chance.choice([[holder[key]], {"value": holder[key]}, [holder[key]] * 50, str(holder[key])])


def _rename(chance: random.Random, holder: Any, key: Any, _: Sequence[Any]) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(KEYS)] = holder.pop(key)
    else:
        holder.append(holder[key])


def _graft(chance: random.Random, holder: Any, key: Any, others: Sequence[Any]) -> None:
    other = chance.choice(others)
    places = list(_places(other))
    giver, name = chance.choice(places) if places else ({"": other}, "")
    taken = json.loads(json.dumps(giver[name]))
    if isinstance(holder, dict) and chance.random() < 0.5:
        holder[str(name)] = taken
    else:
        holder[key] = taken


_CHANGES: tuple[Callable[[random.Random, Any, Any, Sequence[Any]], None], ...] = (
    *(_replace, _replace, _replace, _scale, _drop, _wrap, _rename, _graft),
)
