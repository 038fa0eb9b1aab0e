"""Keys and the audit log for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.tables import cell, facts, footer, listing
from api.render.text import when

Part = Mapping[str, Any]

_KEY_TITLES = ("id", "name", "scope", "state", "expires", "last used", "a minute", "plans a day")
_AUDIT_TITLES = ("at", "who", "via", "did", "to", "outcome", "from")


def render_new_key(answer: Part) -> Group:
    """A key just made: the only time that it is shown, on a line of its own."""
    rows = [
        ("id", answer["id"]),
        ("name", answer["name"]),
        ("scope", answer["scope"]),
        ("expires", when(answer["expires_at"]) if answer["expires_at"] else "never"),
    ]
    said = "Shown this once; send it as Authorization: Bearer KEY, and keep it where secrets are kept."
    return Group(cell(answer["key"], "bold green"), facts(rows), footer(said))


def render_keys(answer: Part) -> RenderableType:
    """Every key."""
    if not answer["keys"]:
        return cell("There are no keys: gpuplan keys create --name NAME --scope plan")
    rows = [
        (
            each["id"],
            each["name"],
            each["scope"],
            each["state"],
            when(each["expires_at"]) if each["expires_at"] else "never",
            when(each["last_used_at"]) if each["last_used_at"] else "never",
            each["requests_per_minute"] or "usual",
            each["plans_per_day"] or "usual",
        )
        for each in answer["keys"]
    ]
    return listing(_KEY_TITLES, rows, right=(6, 7))


def render_audit(records: Sequence[Part], *, more: bool) -> RenderableType:
    """Records, the newest first."""
    if not records:
        return cell("Nothing of the kind was written down.")
    rows = [
        (when(each["at"]), each["name"], each["via"], each["action"], each["subject"], each["outcome"], each["address"])
        for each in records
    ]
    older = [footer("There are older ones: --limit shows more")] if more else []
    return Group(listing(_AUDIT_TITLES, rows), *older)
