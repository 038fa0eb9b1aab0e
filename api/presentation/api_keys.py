"""Sections for API keys and the audit log."""

from collections.abc import Sequence

from gpuplan.api.presentation.sections import Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import when
from gpuplan.api.presentation.text_tables import cell, facts, footer, listing
from gpuplan.api.schemas.access import AuditEntry, Keys, NewKey

_KEY_TITLES = ("id", "name", "scope", "state", "expires", "last used", "requests/min", "plans/day")
_AUDIT_TITLES = ("at", "who", "via", "did", "to", "outcome", "from")


def render_new_key(answer: NewKey) -> Sections:
    """A new key, on a line of its own. It is never shown again."""
    rows = [
        ("id", answer.id),
        ("name", answer.name),
        ("scope", answer.scope),
        ("expires", when(answer.expires_at) if answer.expires_at else "never"),
    ]
    advice = "The key is shown only once. Send it as Authorization: Bearer KEY, and store it with your secrets."
    return sections_of(cell(answer.key, Tone.GOOD), facts(rows), footer(advice))


def render_keys(answer: Keys) -> Sections:
    """All keys as a table."""
    if not answer.keys:
        return sections_of(cell("No keys exist: gpuplan keys create --name NAME --scope plan"))
    rows = [
        (
            key.id,
            key.name,
            key.scope,
            key.state,
            when(key.expires_at) if key.expires_at else "never",
            when(key.last_used_at) if key.last_used_at else "never",
            key.requests_per_minute or "usual",
            key.plans_per_day or "usual",
        )
        for key in answer.keys
    ]
    return sections_of(listing(_KEY_TITLES, rows, right=(6, 7)))


def render_audit(records: Sequence[AuditEntry], *, has_older: bool) -> Sections:
    """Audit records, newest first."""
    if not records:
        return sections_of(cell("No matching audit records."))
    rows = [
        (
            when(record.at),
            record.name,
            record.via,
            record.action,
            record.subject,
            record.outcome,
            record.address,
        )
        for record in records
    ]
    older = [footer("Older records exist; --limit shows more")] if has_older else []
    return sections_of(listing(_AUDIT_TITLES, rows), *older)
