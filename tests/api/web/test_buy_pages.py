"""Own, commit or rent on the page: decided, kept under its address, refused at the line."""

import html
import json
import re
import time

import httpx

from tests.api.http.test_procurement import FORECAST, JOB

#: Few choices, soon weighed.
SMALL = FORECAST | {
    "horizon_years": 1,
    "jobs": [
        {
            "job": JOB
            | {
                "constraints": {
                    "price_kinds": ["on_demand"],
                    "accelerators": ["A10G", "RTX 4090"],
                    "providers": ["aws"],
                    "max_nodes": 1,
                }
            },
            "per_month": 2,
        }
    ],
}


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def sent(client: httpx.Client, given: object) -> httpx.Response:
    return client.post("/buy", data={"document": json.dumps(given, indent=1)})


def test_a_forecast_is_decided_and_its_decision_has_an_address(client: httpx.Client) -> None:
    answer = sent(client, SMALL | {"name": "<b>lab</b>"})
    assert answer.status_code == 303, answer.text
    page = client.get(answer.headers["location"])
    text = words(page.text)
    for phrase in ("<b>lab</b>", "Cheapest for", "Cost", "Sensitivity"):
        assert phrase in text, phrase
    assert "<b>lab" not in page.text


def test_the_cost_over_the_years_is_drawn_and_tabled_for_each_scenario(client: httpx.Client) -> None:
    jobs = [
        {"job": SMALL["jobs"][0]["job"], "per_month": {"low": 1, "expected": 2, "high": 9}, "growth_per_year": "50%"}
    ]
    answer = sent(client, SMALL | {"jobs": jobs, "horizon_years": 2})
    page = words(client.get(answer.headers["location"]).text)
    decision = client.get(f"/v1{answer.headers['location']}").json()["decision"]
    assert "low (30 %) Cost a year" in page
    for scenario in decision["over_years"]:
        for years in scenario["years"]:
            parts = [float(years[f"{way}_usd_per_year"]) for way in ("own", "commitments", "renting")]
            figures = " ".join(f"${usd:,.2f}" for usd in (*filter(None, parts), sum(parts)))
            assert f"{years['from_year']:g} to {years['until_year']:g} {figures}" in page


def test_a_forecast_that_is_sent_twice_from_one_form_is_decided_once(client: httpx.Client) -> None:
    def number() -> str:
        field = re.search(r'name="once" value="([0-9a-f]{32})"', client.get("/buy").text)
        assert field is not None
        return field[1]

    # Without a start a forecast begins now, so that asked again it would be another decision.
    asked = {name: value for name, value in SMALL.items() if name != "start"}

    def decided(form_id: str, **changes: object) -> str:
        answer = client.post("/buy", data={"document": json.dumps(asked | changes), "once": form_id})
        assert answer.status_code == 303, answer.text
        path: str = answer.headers["location"]
        return path

    def another_second() -> None:
        began = int(time.time())
        while int(time.time()) == began:
            time.sleep(0.05)

    # A decision's id follows from what was asked, its start to the second: what differs here begins in another one.
    first = number()
    answered = decided(first)
    another_second()
    assert decided(first) == answered
    # Who goes back and changes the forecast asks something else, as does who opens the form anew.
    assert len({answered, decided(first, name="other"), decided(number())}) == 3


def test_a_forecast_that_no_hardware_meets_is_told_at_once(client: httpx.Client) -> None:
    answer = sent(client, FORECAST | {"jobs": [{"job": JOB | {"deadline": "1min"}, "per_month": 1}], "machines": []})
    assert answer.status_code == 200
    assert "No hardware can run this" in words(answer.text)


def test_what_is_no_forecast_comes_back_with_the_line_to_mend(client: httpx.Client) -> None:
    answer = sent(client, FORECAST | {"pue": 0.5})
    line = json.dumps(FORECAST | {"pue": 0.5}, indent=1).splitlines().index(' "pue": 0.5') + 1
    assert answer.status_code == 422
    assert f"pue, line {line}" in words(answer.text)
    assert client.post("/buy", data={"document": ""}).status_code == 422
    assert client.get("/buy/none").status_code == 404
    assert client.get("/buy?example=true").status_code == 200
