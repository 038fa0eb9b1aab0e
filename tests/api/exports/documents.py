"""Answers of `gpuplan plan` to export: one real shape, and phases on every cloud."""

from typing import Any

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.model import capacity_ladder, shared
from gpuplan.planner.model.plan import Plan
from tests.partial_answers import completed

Document = dict[str, Any]

CHECKPOINTS = "s3://my-bucket/llama-3-8b"
#: Machines of each provider as the catalogue has them.
MACHINES: dict[str, Document] = {
    "aws": {"provider": "aws", "region": "us-east-1", "zone": "use1-az4", "instance_type": "p5.48xlarge"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "aws-one": {"provider": "aws", "region": "eu-west-1", "zone": "", "instance_type": "g5.xlarge"}
    | {"accelerator": "A10G", "accelerators_per_node": 1},
    "aws-v100": {"provider": "aws", "region": "us-west-2", "zone": "", "instance_type": "p3.16xlarge"}
    | {"accelerator": "V100-16GB", "accelerators_per_node": 8},
    "aws-neuron": {"provider": "aws", "region": "us-east-1", "zone": "use1-az6", "instance_type": "trn1.32xlarge"}
    | {"accelerator": "Trainium1", "accelerators_per_node": 16},
    "gcp": {"provider": "gcp", "region": "us-central1", "zone": "us-central1-a", "instance_type": "a3-highgpu-8g"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "gcp-n1": {"provider": "gcp", "region": "europe-west4", "zone": "", "instance_type": "n1-standard-16+2xT4"}
    | {"accelerator": "T4", "accelerators_per_node": 2},
    "gcp-tpu": {"provider": "gcp", "region": "us-east5", "zone": "us-east5-a", "instance_type": "tpu-v5p-16"}
    | {"accelerator": "TPU-v5p", "accelerators_per_node": 4, "slice_hosts": 2},
    "gcp-tpu-host": {"provider": "gcp", "region": "us-central1", "zone": "us-central1-b", "instance_type": "tpu-v6e-8"}
    | {"accelerator": "TPU-v6e", "accelerators_per_node": 8, "slice_hosts": 1},
    "gcp-arm": {"provider": "gcp", "region": "us-central1", "zone": "us-central1-a"}
    | {"instance_type": "a4x-highgpu-4g", "accelerator": "GB200", "accelerators_per_node": 4},
    "azure": {"provider": "azure", "region": "eastus", "zone": "", "instance_type": "Standard_ND96isr_H100_v5"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "azure-a100": {"provider": "azure", "region": "eastus", "zone": "", "instance_type": "Standard_ND96asr_v4"}
    | {"accelerator": "A100-40GB-SXM", "accelerators_per_node": 8},
    "azure-amd": {"provider": "azure", "region": "swedencentral", "zone": ""}
    | {"instance_type": "Standard_ND96isr_MI300X_v5", "accelerator": "MI300X", "accelerators_per_node": 8},
    "lambda": {"provider": "lambda", "region": "unknown", "zone": "", "instance_type": "gpu_8x_h100_sxm5"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "runpod": {"provider": "runpod", "region": "EU-RO-1", "zone": "", "instance_type": "NVIDIA H100 80GB HBM3 x8"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "runpod-community": {"provider": "runpod", "region": "unknown", "zone": ""}
    | {"instance_type": "NVIDIA GeForce RTX 4090 x1 community", "accelerator": "RTX-4090", "accelerators_per_node": 1},
    "nebius": {"provider": "nebius", "region": "eu-north1", "zone": ""}
    | {"instance_type": "gpu-h200-sxm 8gpu-128vcpu-1600gb", "accelerator": "H200-141GB-SXM"}
    | {"accelerators_per_node": 8},
    "verda": {"provider": "verda", "region": "FIN-01", "zone": "", "instance_type": "8H100.80S.176V"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "own-campus": {"provider": "own-campus", "region": "rack-1", "zone": "", "instance_type": "8xH100"}
    | {"accelerator": "H100-80GB-SXM", "accelerators_per_node": 8},
    "local": {"provider": "local", "region": "rack 7", "zone": "", "instance_type": "node; rm -rf /"}
    | {"accelerator": "A100-80GB-SXM", "accelerators_per_node": 8},
}


def phase(machine: str = "aws", *, kind: str = "on_demand", nodes: int = 2, **changed: Any) -> Document:
    """One phase as a plan has it."""
    spot = price_kinds()[kind].interruptible
    row: Document = MACHINES[machine] | {
        "nodes": nodes,
        "price_kind": kind,
        "usd_per_node_hour": "12.3456",
        "role": "planned",
        "starts_at": "2026-11-28T12:00:00Z",
        "share": 1.0,
        "cost_usd": {
            "expected": "2000.000001",
            "breakdown": {
                "compute": "1980.00",
                "storage": "3.000001",
                "egress": "7.00",
                "power": "0.00",
                "setup": "10.00",
            },
        },
        "moved": None,
        "hours": 80.25,
        "precision": "bf16",
        "layout": {
            "data": 8,
            "tensor": 2,
            "pipeline": 1,
            "context": 1,
            "expert": 1,
            "interleave": 1,
            "zero_stage": 3,
            "micro_batch": 4,
            "checkpointing": "full",
        },
        "checkpoint_interval_hours": 0.25 if spot else None,
        "expected_preemptions": 4.2 if spot else 0.0,
    }
    # A slice is had as a whole, whatever number of nodes is asked for.
    hosts = changed.get("slice_hosts", row.get("slice_hosts"))
    whole: Document = completed(shared.Phase, row | {"slice_hosts": hosts, "nodes": hosts or nodes} | changed)
    return whole


def ladder(*choices: Document, **parts: Any) -> Document:
    """A capacity ladder with these next choices, each a phase with other parts."""
    keys = capacity_ladder.NextChoice.__dataclass_fields__
    rows = [{key: value for key, value in choice.items() if key in keys} | {"cost_usd": "0.00"} for choice in choices]
    whole: Document = completed(capacity_ladder.CapacityLadder, {"try_minutes": 20.0, "next_choices": rows} | parts)
    return whole


def answer(*phases: Document, name: str = "llama-3-8b", checkpoints: bool = True) -> Document:
    """An answer with these phases, of a job that names a place for its checkpoints unless told otherwise."""
    plan = completed(
        Plan,
        {
            "id": "plan-0123456789abcdef0123",
            "job": {"name": name, "data": {"checkpoints": CHECKPOINTS} if checkpoints else {}},
            "snapshot_id": "0961144a3bc4ebd327519ca01e325437",
            "version": "0.1.0",
            "start": "2026-11-28T12:00:00Z",
            "cost_usd": {"expected": "2000.000001", "p95": "2500.00"},
            "hours": {"expected": 80.25, "confident": 90.0, "p95": 100.0},
            "phases": list(phases) or [phase()],
        },
    )
    return {"outcome": "planned", "plan": plan, "meta": {"created_at": "2026-11-21T12:00:00+00:00"}}


def in_phases(name: str = "llama-3-8b") -> Document:
    """Spot, then a move to on-demand machines elsewhere, and machines that stand by."""
    moved = {"from": {name: MACHINES["aws"][name] for name in ("provider", "region", "zone", "instance_type")}}
    return answer(
        phase("aws", kind="spot", share=0.75, hours=60.0),
        phase("azure-a100", starts_at="2026-12-01T00:00:00Z", share=0.25, hours=20.25, moved=moved),
        phase(
            "gcp",
            role="standby",
            starts_at="2026-12-02T12:00:00Z",
            share=0.5,
            probability=0.04,
            switch_by="2026-12-02T18:00:00Z",
            switch_share=0.58,
        ),
        name=name,
    )
