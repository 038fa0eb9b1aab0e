"""Many jobs together: portfolios, and what to buy for a forecast."""

from collections.abc import Iterator

from tests.golden.question import START, Document, Question

_TUNING: Document = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "constraints": {"max_nodes": 2, "providers": ["aws"], "price_kinds": ["on_demand"], "accelerators": ["A10G"]},
}
_VISION: Document = {
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "60M"},
    "constraints": {"max_nodes": 2, "vendors": ["nvidia"], "price_kinds": ["on_demand", "spot"]},
}


def _jobs(count: int, **changes: object) -> list[Document]:
    return [_TUNING | {"name": f"job-{i}", "deadline": "48h"} | changes for i in range(count)]


_QUOTA: Document = {"provider": "aws", "region": "us-east-1", "accelerators": 8}
_PORTFOLIOS: dict[str, Document] = {
    "alike": {"jobs": _jobs(3)},
    "quota": {"jobs": _jobs(3), "quotas": [_QUOTA]},
    "family-quota": {"jobs": _jobs(4), "quotas": [{"provider": "aws", "accelerator": "A10G", "accelerators": 4}]},
    "budget": {"jobs": _jobs(3), "budget_usd": 60},
    "no-budget": {"jobs": _jobs(2, value="$5"), "budget_usd": 1},
    "mixed": {"jobs": [*_jobs(2), _VISION | {"name": "vision", "deadline": "3d"}]},
    "released": {"jobs": [*_jobs(2), _VISION | {"name": "later", "deadline": "4d", "release": "12h", "priority": 5}]},
    "impossible": {"jobs": [*_jobs(1), _TUNING | {"name": "hopeless", "deadline": "2h", "value": "$100"}]},
    "carbon": {"jobs": [job | {"objective": "carbon"} for job in _jobs(2)]},
    "long-slots": {"jobs": _jobs(3), "slot": "6h", "horizon": "4d"},
}


def portfolios() -> Iterator[Question]:
    """So many steps of the search, not so many seconds: the same plan on every machine."""
    for i, (name, document) in enumerate(_PORTFOLIOS.items()):
        asked = {"start": START, "slot": "2h"} | document
        if i % 2:
            path = "/v1/portfolios?iterations=40&seed=0"
            yield Question(family="portfolio", name=name, interface="http", path=path, body=asked)
        else:
            arguments = ["portfolio", "jobs.json", "--json", "--iterations", "40", "--seed", "0"]
            yield Question(
                family="portfolio", name=name, interface="cli", arguments=arguments, files={"jobs.json": asked}
            )


_FINE_TUNES: Document = {
    "job": {
        "name": "fine-tunes",
        "workload": {"kind": "preset", "model": "qwen2.5-7b", "tokens": "50M"},
        "training": {"method": "qlora"},
        "deadline": "5d",
        "constraints": {"price_kinds": ["on_demand"]},
    },
    "per_month": {"low": 5, "expected": 15, "high": 40},
}
_SMALLER: Document = {
    "job": _FINE_TUNES["job"] | {"name": "smaller", "deadline": "3d"},
    "per_month": 20,
    "growth_per_year": "20%",
}
_HOME: Document = {
    "start": START,
    "name": "home",
    "horizon_years": 4,
    "electricity_usd_per_kwh": 0.35,
    "limits": {"slots": 2, "power_watts": 1600},
    "machines": ["RTX 5090"],
    "prices": [{"accelerator": "RTX 5090", "usd": 2300, "power_watts": 700}],
    "jobs": [_FINE_TUNES],
}
_FORECASTS: dict[str, Document] = {
    "home": _HOME,
    "dear-power": _HOME | {"electricity_usd_per_kwh": 1.5},
    "two-jobs": _HOME | {"jobs": [_FINE_TUNES, _SMALLER]},
    "any-machine": {name: value for name, value in _HOME.items() if name not in {"machines", "prices"}}
    | {"limits": {"upfront_usd": 20000}},
    "no-money": _HOME | {"limits": {"upfront_usd": 100}},
}


def decisions() -> Iterator[Question]:
    """Own, commit or rent."""
    for i, (name, document) in enumerate(_FORECASTS.items()):
        if i % 2:
            yield Question(family="buy", name=name, interface="http", path="/v1/buy", body=document)
        else:
            arguments = ["buy", "jobs.json", "--json"]
            yield Question(family="buy", name=name, interface="cli", arguments=arguments, files={"jobs.json": document})
