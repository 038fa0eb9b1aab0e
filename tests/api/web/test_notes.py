"""Notes on a plan: escaped, one for each identity, and never overwritten by another tab in silence."""

import re
from datetime import UTC, datetime

import httpx
import pytest

from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import Identity, with_lesser
from gpuplan.api.services.composition import Services

HOSTILE = "<script>alert(1)</script>\n</textarea>&amp; é漢"


@pytest.fixture
def plan(client: httpx.Client) -> str:
    """The path of a plan without a note."""
    form = {"model": "resnet-50", "samples": "3M", "name": f"noted {datetime.now(UTC).timestamp()}"}
    return str(client.post("/plans", data=form).headers["location"])


def version(client: httpx.Client, plan: str) -> str:
    return str(re.findall(r'name="version" value="(\d+)"', client.get(plan).text)[0])


def test_a_note_is_kept_as_it_was_typed_and_listed_escaped(client: httpx.Client, plan: str) -> None:
    saved = client.post(f"{plan}/note", data={"note": HOSTILE.replace("\n", "\r\n"), "version": "0"})
    assert (saved.status_code, saved.headers["location"]) == (303, f"{plan}#note")
    for page in (client.get(plan).text, client.get("/plans").text):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page
    assert client.post(f"{plan}/note", data={"note": "", "version": "1"}).status_code == 303
    assert "alert(1)" not in client.get(plan).text


def test_the_second_of_two_tabs_sees_both_texts_before_it_overwrites(client: httpx.Client, plan: str) -> None:
    assert client.post(f"{plan}/note", data={"note": "of the first tab", "version": "0"}).status_code == 303
    refused = client.post(f"{plan}/note", data={"note": "of the second <b>", "version": "0"})
    assert refused.status_code == 409
    assert "Not saved: the note was changed elsewhere" in refused.text
    for text in ("of the first tab", "of the second &lt;b&gt;"):
        assert text in refused.text
    assert "of the second" not in client.get(plan).text
    # Saved again, on top of what was shown.
    seen = re.findall(r'name="version" value="(\d+)"', refused.text)[0]
    assert client.post(f"{plan}/note", data={"note": "of the second", "version": seen}).status_code == 303
    assert "of the second" in client.get(plan).text
    # The same text twice is no conflict.
    assert client.post(f"{plan}/note", data={"note": "of the second", "version": "0"}).status_code == 303
    assert version(client, plan) == "2"


@pytest.mark.parametrize(
    ("note", "seen", "message"),
    [
        ("x" * 4001, "0", "has 4,001 characters; accepted are at most 4,000"),
        ("a\x1b[31m", "0", "control character"),
        ("a", "", "is not a number"),
        ("a", "-1", "is not a number"),
    ],
)
def test_a_note_that_cannot_be_kept_is_refused_and_stays_in_its_field(
    client: httpx.Client, plan: str, note: str, seen: str, message: str
) -> None:
    refused = client.post(f"{plan}/note", data={"note": note, "version": seen})
    assert refused.status_code == 422
    assert message in refused.text
    assert "\x1b" not in refused.text
    assert client.post("/plans/plan-00000000000000000000/note", data={"note": "a", "version": "0"}).status_code == 404


def test_each_identity_has_its_own_note(gpuplan: Services, plan: str) -> None:
    plan_id, now = plan.removeprefix("/plans/"), datetime.now(UTC)
    ann, bob = (
        Requester(identity=Identity(id=f"key:{name}", name=name, scopes=with_lesser(["plan"]), via="key"))
        for name in ("ann", "bob")
    )
    with acting_as(ann):
        assert gpuplan.notes.write(plan_id, "of ann", seen=0, now=now) is not None
        assert gpuplan.notes.by_plan() == {plan_id: "of ann"}
    with acting_as(bob):
        assert gpuplan.notes.of(plan_id) is None
