"""What lies around a job: own machines, settings, the catalogue, and input that is refused."""

from collections.abc import Iterator
from itertools import cycle

from tests.golden.question import Document, Question, plan_question

_VISION: Document = {
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "20M"},
    "deadline": "3d",
    "constraints": {"max_nodes": 4, "vendors": ["nvidia"]},
}
_TUNING: Document = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "300M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "deadline": "4d",
    "constraints": {"max_nodes": 4, "vendors": ["nvidia"]},
}

INVENTORY: Document = {
    "site": "lab",
    "electricity_usd_per_kwh": 0.32,
    "grams_co2_per_kwh": 350,
    "machines": [
        {
            "name": "rig-3090",
            "accelerator": "RTX 3090",
            "count": 2,
            "link": "nvlink",
            "purchase_usd": 5200,
            "life_years": 4,
            "residual_usd": 1000,
            "power_watts": 900,
            "vcpus": 32,
            "ram_gib": 128,
            "free_windows": [
                {
                    "days": ["mon", "tue", "wed", "thu", "fri"],
                    "from": "18:00",
                    "to": "08:00",
                    "timezone": "Europe/Berlin",
                }
            ],
        },
        {"name": "workstation-4090", "accelerator": "RTX 4090", "purchase_usd": 4100, "life_years": 4},
        {
            "name": "server-a6000",
            "accelerator": "A6000",
            "count": 4,
            "machines": 2,
            "network_gbps": 100,
            "purchase_usd": 29000,
            "life_years": 5,
            "residual_usd": 4000,
            "pue": 1.4,
            "vcpus": 64,
            "ram_gib": 512,
        },
        {"name": "guest-a100", "accelerator": "A100 80GB", "count": 8, "usd_per_hour": 9.50},
    ],
}
_SETTINGS: dict[str, Document] = {
    "goodput": {"goodput": 0.95},
    "set-up": {"setup_hours": 1.5, "restart_hours": 0.5},
    "slow-checkpoints": {"checkpoint_gbs": 0.2, "checkpoints_kept": 5, "move_gbs": 0.1},
    "many-interruptions": {"default_interruptions_per_hour": 0.5, "spot_wait_hours": 1},
    "discount": {"discounts": [{"provider": "aws", "percent": 30}]},
    "rate": {"discounts": [{"provider": "gcp", "accelerator": "H100", "usd_per_hour": 5}]},
    "credits": {"credits": [{"provider": "gcp", "usd": 20000, "expires": "2027-06-30T00:00Z"}]},
    "moves-that-pay": {"least_saving_of_a_move_percent": 10},
}

#: Documents that cannot be used.
_REFUSED: dict[str, Document] = {
    "unknown-key": {"deadlin": "3d"},
    "deadline": {"deadline": "7 dogs"},
    "past": {"deadline": "2026-11-19T00:00Z"},
    "accelerator": {"constraints": {"accelerators": ["H1000"]}},
    "region": {"constraints": {"regions": ["atlantis-*"]}},
    "price-kind": {"constraints": {"price_kinds": ["free"]}},
    "model": {"workload": {"kind": "preset", "model": "llama-9-8b", "tokens": "1B"}},
    "unit": {"workload": {"kind": "preset", "model": "resnet-50", "tokens": "1B"}},
    "no-work": {"workload": {"kind": "preset", "model": "resnet-50"}},
    "kind": {"workload": {"kind": "magic"}},
    "confidence": {"confidence": 1.5},
    "budget": {"budget_usd": -3},
    "objective": {"objective": "beauty"},
    "precision": {"training": {"precision": "fp3"}},
    "no-phases": {"constraints": {"max_phases": 0}},
    "nodes": {"constraints": {"max_nodes": 10000}},
    "data": {"data": {"location": "moon", "dataset_gb": 1}},
    "several": {"deadline": "soon", "confidence": "sure", "objective": 3},
}


def owned_machines() -> Iterator[Question]:
    """Jobs of somebody who owns machines."""
    for name, job in (("vision", _VISION), ("tuning", _TUNING)):
        for basis in ("full", "marginal"):
            for kinds in (["owned"], ["owned", "spot", "on_demand"]):
                wanted = job | {"constraints": job["constraints"] | {"price_kinds": kinds}, "deadline": "8d"}
                files = {"own.json": INVENTORY, "settings.json": {"cost_basis": basis}}
                options = ["--inventory", "own.json", "--settings", "settings.json"]
                key = f"{name}-{basis}-{len(kinds)}"
                yield plan_question("own-machines", key, "cli", wanted, files=files, arguments=options)
    arguments = ["local", "list", "--inventory", "own.json", "--json"]
    yield Question(
        family="own-machines", name="list", interface="cli", arguments=arguments, files={"own.json": INVENTORY}
    )


def settings() -> Iterator[Question]:
    """Other assumptions than the usual ones."""
    for name, document in _SETTINGS.items():
        files = {"settings.json": document}
        yield plan_question(
            "settings", name, "cli", _TUNING, files=files, arguments=["--settings", "settings.json"], echo=True
        )


def refusals() -> Iterator[Question]:
    """The fields that are named."""
    interfaces = cycle(("cli", "http", "mcp"))
    for name, change in _REFUSED.items():
        yield plan_question("refused", name, next(interfaces), _VISION | change)


def catalogue() -> Iterator[Question]:
    """Prices and accelerators, filtered."""
    asked = {
        "h100-spot": {"accelerator": "H100", "kind": "spot"},
        "gcp-us": {"provider": "gcp", "region": "us-*", "kind": "on_demand"},
        "azure-eu": {"provider": "azure", "geography": "eu"},
        "p5": {"instance_type": "p5*"},
    }
    for name, filters in asked.items():
        yield Question(family="catalogue", name=name, interface="mcp", path="offers", body=filters | {"limit": 20})
        options = [text for key, value in filters.items() for text in (f"--{key.replace('_', '-')}", value)]
        options += ["--region", "us-*"] if name in {"h100-spot", "p5"} else []
        arguments = ["offers", *options, "--format", "json"]
        if name in {"h100-spot", "p5"}:
            yield Question(family="catalogue", name=f"{name}-cli", interface="cli", arguments=arguments)
    path = "/v1/offers?accelerator=MI300X&limit=20"
    yield Question(family="catalogue", name="mi300x", interface="http", method="GET", path=path)
    path = "/v1/prices?instance_type=p4d.24xlarge&kind=on_demand"
    yield Question(family="catalogue", name="p4d-prices", interface="http", method="GET", path=path)
    body = {"instance_type": "a3-highgpu-8g"}
    yield Question(family="catalogue", name="a3-history", interface="mcp", path="history", body=body)
