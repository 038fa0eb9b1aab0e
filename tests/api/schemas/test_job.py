import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpuplan.api.schemas.job import JobDocument, canonical, parse_job
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Explicit, Preset, TrainingJob, Transformer

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)

LLAMA: dict[str, Any] = {
    "name": "llama-3-8b",
    "workload": {
        "kind": "transformer",
        "layers": 32,
        "hidden_size": 4096,
        "ffn_size": 14336,
        "attention_heads": 32,
        "kv_heads": 8,
        "vocabulary_size": 128256,
        "sequence_length": 8192,
        "gated_mlp": True,
        "causal": True,
        "tokens": 300e9,
        "global_batch_tokens": 4e6,
    },
    "training": {"method": "full", "precision": "bf16", "optimizer": "adamw", "activation_checkpointing": "auto"},
    "deadline": "14d",
    "budget_usd": 250000,
    "confidence": 0.95,
    "constraints": {
        "providers": ["aws", "gcp", "azure", "local"],
        "geography": ["us", "eu"],
        "price_kinds": ["on_demand", "spot", "owned"],
        "max_nodes": 64,
    },
    "data": {"location": "aws:us-east-1", "dataset_gb": 4000},
}
PRESET = {"kind": "preset", "model": "resnet-50", "samples": "90M"}
EXPLICIT = {"kind": "explicit", "total_flops": "1.2e21", "memory_gib": "640 GB"}


def changed(*path_and_value: Any, job: dict[str, Any] = LLAMA) -> dict[str, Any]:
    """The job with one field set, or left out where the value is `...`."""
    *path, last, value = path_and_value
    document = copy.deepcopy(job)
    inner = document
    for part in path:
        inner = inner.setdefault(part, {})
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


def parsed(*path_and_value: Any) -> TrainingJob:
    return parse_job(changed(*path_and_value), now=NOW)


def transformer(*path_and_value: Any) -> Transformer:
    workload = parsed("workload", *path_and_value).workload
    assert isinstance(workload, Transformer)
    return workload


def faults(document: Any) -> dict[str, str]:
    with pytest.raises(UnusableInput) as refused:
        parse_job(document, now=NOW)
    assert "\n" not in str(refused.value)
    return {fault.field: fault.message for fault in refused.value.faults}


def test_the_job_of_the_documentation_is_read_as_it_stands() -> None:
    job = parse_job(LLAMA, now=NOW)
    assert isinstance(job.workload, Transformer)
    assert (job.workload.layers, job.workload.kv_heads, job.workload.head_size) == (32, 8, 128)
    assert (job.deadline_hours, job.budget_usd, job.confidence) == (336.0, 250_000.0, 0.95)
    assert job.constraints.geography == ("us", "eu")
    assert (job.data.provider, job.data.region, job.data.dataset_gb) == ("aws", "us-east-1", 4000.0)
    assert job.start == NOW
    assert job.assumptions == ()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://my-bucket", "s3://my-bucket"),
        ("s3://my-bucket/runs/llama-3-8b/", "s3://my-bucket/runs/llama-3-8b"),
        ("gs://my_bucket/a", "gs://my_bucket/a"),
        (
            "abfss://runs@account1.dfs.core.windows.net/a",
            "abfs://runs@account1.dfs.core.windows.net/a",
        ),
        ("/mnt/checkpoints/a", "/mnt/checkpoints/a"),
    ],
)
def test_a_place_for_checkpoints_is_kept_and_written_back(given: str, stored: str) -> None:
    job = parsed("data", "checkpoints", given)
    assert job.data.checkpoints == stored
    assert canonical(job)["data"]["checkpoints"] == stored


def test_a_job_needs_little_more_than_a_workload() -> None:
    job = parse_job({"workload": PRESET}, now=NOW)
    assert job.workload == Preset(model="resnet-50", samples=90e6)
    assert (job.name, job.deadline_hours, job.budget_usd, job.confidence) == ("resnet-50", None, None, 0.9)
    assert (job.constraints.max_nodes, job.constraints.price_kinds) == (32, ())
    assert job.training.precision == "auto"


def test_explicit_work_carries_units() -> None:
    job = parse_job({"workload": EXPLICIT}, now=NOW)
    assert isinstance(job.workload, Explicit)
    assert job.workload.total_flops == 1.2e21
    assert job.workload.memory_gib == pytest.approx(640e9 / 2**30)


def test_a_canonical_job_reads_back_as_the_same_job() -> None:
    for document in (LLAMA, {"workload": PRESET}, {"workload": EXPLICIT}, changed("training", "method", "lora")):
        job = parse_job(document, now=NOW)
        written = json.loads(json.dumps(canonical(job), allow_nan=False))
        again = parse_job(written, now=NOW + timedelta(days=1))
        assert canonical(again) == canonical(job)
        assert (again.workload, again.training, again.start) == (job.workload, job.training, job.start)
        assert again.deadline_hours == job.deadline_hours


def test_a_canonical_job_names_the_price_kinds_that_a_job_gets_by_default() -> None:
    constraints = canonical(parse_job({"workload": PRESET}, now=NOW))["constraints"]
    assert constraints["price_kinds"] == ["on_demand", "spot", "owned"]


@pytest.mark.parametrize(("ffn_size", "gated"), [(14336, True), (16384, False), (11008, True)])
def test_a_block_four_times_as_wide_as_the_model_is_not_gated_unless_said(ffn_size: int, gated: bool) -> None:
    document = changed("workload", "gated_mlp", ..., job=changed("workload", "ffn_size", ffn_size))
    job = parse_job(document, now=NOW)
    assert isinstance(job.workload, Transformer)
    assert job.workload.gated_mlp is gated
    assert "gated_mlp was not given" in job.assumptions[0]


def test_left_out_heads_and_widths_are_filled_in() -> None:
    assert transformer("kv_heads", ...).kv_heads == 32
    assert transformer("ffn_size", ...).ffn_size == 4 * 4096
    assert "ffn_size was not given" in parsed("workload", "ffn_size", ...).assumptions[0]


@pytest.mark.parametrize(
    ("tokens", "sequence_length", "expected"),
    [
        ("300B", 8192, 2**22),
        ("300B", 4096, 2**22),
        ("20M", 8192, 16384),
        (5000, 8192, 5000),
        ("300B", 3_000_000, 3_000_000),
    ],
)
def test_a_batch_that_is_left_out_is_a_usual_one_of_at_least_one_sequence(
    tokens: object, sequence_length: int, expected: float
) -> None:
    document = changed("workload", "tokens", tokens, job=changed("workload", "sequence_length", sequence_length))
    job = parse_job(changed("workload", "global_batch_tokens", ..., job=document), now=NOW)
    assert isinstance(job.workload, Transformer)
    assert job.workload.global_batch_tokens == expected
    assert "global_batch_tokens was not given" in job.assumptions[0]


def test_a_default_batch_counts_the_experts_that_a_token_uses() -> None:
    document = changed("workload", "experts", 8, job=changed("workload", "global_batch_tokens", ...))
    batches = []
    for active in (1, 8):
        job = parse_job(changed("workload", "active_experts", active, job=document), now=NOW)
        assert isinstance(job.workload, Transformer)
        batches.append(job.workload.global_batch_tokens)
    assert batches[0] < batches[1]


def test_experts_take_the_dense_width_unless_they_have_their_own() -> None:
    document = changed("workload", "experts", 8, job=changed("workload", "active_experts", 2))
    job = parse_job(document, now=NOW)
    assert isinstance(job.workload, Transformer)
    assert (job.workload.experts, job.workload.active_experts, job.workload.expert_ffn_size) == (8, 2, 14336)


def test_names_are_understood_in_the_spellings_people_use() -> None:
    constraints = {
        "providers": "Amazon",
        "regions": ["us-*", "azure:east*"],
        "price_kinds": ["on-demand", "SPOT"],
        "accelerators": ["H100 SXM 80GB", "rtx 3090", "nvidia-l4"],
        "vendors": ["nvidia"],
        "geography": ["south_america", "US"],
        "instance_types": ["p5.*", "Standard_ND*"],
        "partitions": ["commercial", "gov"],
    }
    constraints_read = parsed("constraints", constraints).constraints
    assert constraints_read.providers == ("aws",)
    assert constraints_read.price_kinds == ("on_demand", "spot")
    assert constraints_read.accelerators == ("H100-80GB-SXM", "RTX-3090", "L4")
    assert constraints_read.vendors == ("NVIDIA",)
    assert constraints_read.geography == ("south-america", "us")
    training = parsed("training", {"precision": "bfloat16", "optimizer": "AdamW-8bit"}).training
    assert (training.precision, training.optimizer) == ("bf16", "adamw_8bit")


def test_a_name_that_several_accelerators_share_means_all_of_them_and_says_so() -> None:
    job = parsed("constraints", "accelerators", ["H100", "RTX 3090", "H100-80GB-PCIe"])
    assert set(job.constraints.accelerators) >= {"H100-80GB-SXM", "RTX-3090", "H100-80GB-PCIe"}
    assert len(set(job.constraints.accelerators)) == len(job.constraints.accelerators)
    (note,) = job.assumptions
    assert note.startswith("accelerators: 'H100' means any of ")
    assert "H100-80GB-PCIe" in note


def test_a_deadline_may_be_a_time_and_counts_from_the_start() -> None:
    assert parsed("deadline", "2026-11-23T10:00+01:00").deadline_hours == 48
    started = changed("start", "2026-11-22T09:00Z", job=changed("deadline", "2026-11-23T09:00Z"))
    assert parse_job(started, now=NOW).deadline_hours == 24


BAD: list[tuple[tuple[Any, ...], str, str]] = [
    (("deadlin", "7d"), "deadlin", "unknown key; did you mean deadline?"),
    (("workload", "hiden_size", 4096), "workload.hiden_size", "did you mean hidden_size?"),
    (
        ("training", "xyz", 1),
        "training.xyz",
        "unknown key; accepted are method, stage, framework, completion_tokens, rank",
    ),
    (("deadline", "7 dogs"), "deadline", "'dogs' is not a unit of time"),
    (("deadline", "2020-01-01T00:00Z"), "deadline", "is in the past: not after now"),
    (("deadline", "2026-12-01"), "deadline", "has no time zone"),
    (("deadline", "2099-12-01T00:00Z"), "deadline", "more than ten years"),
    (("deadline", -1), "deadline", "negative"),
    (("deadline", float("nan")), "deadline", "finite"),
    (("deadline", {"days": 7}), "deadline", "is not a number"),
    (("start", "yesterday"), "start", "ISO 8601"),
    (("workload", ...), "workload", "is missing, and required"),
    (("workload", [1]), "workload", "write a mapping"),
    (("workload", "kind", ...), "workload.kind", "write one of transformer, preset, explicit, profile"),
    (("workload", "kind", "transfomer"), "workload.kind", "did you mean transformer?"),
    (("workload", "kind", "profil"), "workload.kind", "did you mean profile?"),
    (("workload", "kind", []), "workload.kind", "write one of"),
    (("workload", "layers", ...), "workload.layers", "is missing, and required"),
    (("workload", "layers", -1), "workload.layers", "whole number from 1 to 10 000"),
    (("workload", "layers", 1.5), "workload.layers", "whole number"),
    (("workload", "layers", float("inf")), "workload.layers", "finite"),
    (("workload", "tokens", "1e40"), "workload.tokens", "absurdly large"),
    (("workload", "tokens", 0), "workload.tokens", "is zero"),
    (("workload", "gated_mlp", "yes"), "workload.gated_mlp", "write true or false"),
    (("workload", "attention_heads", 24), "workload.attention_heads", "24 does not divide hidden_size 4096"),
    (("workload", "kv_heads", 7), "workload.kv_heads", "7 does not divide attention_heads 32"),
    (("workload", "experts", 8), "workload.active_experts", "the experts per token, 1 to 8"),
    (("workload", "active_experts", 2), "workload.experts", "give experts too"),
    (("workload", "dense_layers", 2), "workload.dense_layers", "layers without experts"),
    (("workload", "global_batch_tokens", 100), "workload.global_batch_tokens", "less than one sequence"),
    (("workload", "global_batch_tokens", "1T"), "workload.global_batch_tokens", "more than all tokens"),
    (("training", "precision", "bf61"), "training.precision", "did you mean bf16?"),
    (("training", "optimizer", "adamwx"), "training.optimizer", "nearest: adamw"),
    (("training", "rank", 8), "training.rank", "belongs to method lora or qlora"),
    (("training", "adapters_on", "all"), "training.adapters_on", "belongs to method lora or qlora"),
    (("training", []), "training", "write a mapping"),
    (("budget_usd", -5), "budget_usd", "negative"),
    (("budget_usd", 0), "budget_usd", "is zero"),
    (("budget_usd", "€500"), "budget_usd", "US dollars"),
    (("confidence", 1), "confidence", "between 0 and 1"),
    (("constraints", "providers", ["awz"]), "constraints.providers[0]", "nearest: aws"),
    (("constraints", "providers", {"a": 1}), "constraints.providers", "write a list"),
    (("constraints", "providers", ["aws"] * 500), "constraints.providers", "at most 200"),
    (("constraints", "regions", ["us east"]), "constraints.regions[0]", "azure:east*"),
    (("constraints", "regions", ["ibm:*"]), "constraints.regions[0]", "azure"),
    (("constraints", "geography", ["mars"]), "constraints.geography[0]", "write one of us, canada"),
    (("constraints", "price_kinds", ["spott"]), "constraints.price_kinds[0]", "nearest: spot"),
    (("constraints", "accelerators", ["H1000"]), "constraints.accelerators[0]", "nearest: H100-80GB-SXM"),
    (
        ("constraints", "accelerators", ["L4", "CPU"]),
        "constraints.accelerators[1]",
        "without an accelerator are beyond",
    ),
    (("constraints", "vendors", ["nvidiaa"]), "constraints.vendors[0]", "did you mean NVIDIA?"),
    (("constraints", "max_nodes", 0), "constraints.max_nodes", "from 1 to 4 096"),
    (("constraints", "partitions", ["moon"]), "constraints.partitions[0]", "commercial, gov, china"),
    (("data", "location", "us-east-1"), "data.location", "aws:us-east-1"),
    (("data", "location", "s3://bucket"), "data.location", "aws:us-east-1"),
    (("data", "location", "aws:us-esat-1"), "data.location", "us-east-1, us-west-2"),
    (("data", "location", "gcp:us-east-1"), "data.location", "not a region of gcp"),
    (("data", "dataset_gb", "4 dogs"), "data.dataset_gb", "not a unit of memory"),
    (("data", "checkpoints", "my-bucket"), "data.checkpoints", "write s3://bucket/path, gs://bucket/path, abfs://"),
    (("data", "checkpoints", "s3://B"), "data.checkpoints", "not a checkpoint location"),
    (("data", "checkpoints", "s3://bucket/$(id)"), "data.checkpoints", "not a checkpoint location"),
    (("data", "checkpoints", "/mnt/a/../../etc"), "data.checkpoints", "not a checkpoint location"),
    (("data", "checkpoints", "/home/me"), "data.checkpoints", "or /mnt/path for a file system"),
    (("data", "checkpoints", "abfs://container/path"), "data.checkpoints", "container@account.dfs.core.windows.net"),
    (("data", "checkpoints", 7), "data.checkpoints", "7 is not a checkpoint location"),
    (("name", "two\nlines"), "name", "one printable line"),
    (("name", "\x00"), "name", "one printable line"),
    (("workload", {"kind": "preset", "model": "lama-3-8b", "tokens": "1B"}), "workload.model", "nearest: llama-3-8b"),
    (("workload", {"kind": "preset", "model": "resnet-50"}), "workload.samples", "give the samples to train on"),
    (("workload", {"kind": "preset", "model": "llama-3-8b"}), "workload.tokens", "the tokens or samples to train on"),
    (("workload", PRESET | {"tokens": "1B"}), "workload.tokens", "contradicts samples; give one of the two"),
    (("workload", PRESET | {"global_batch_samples": "1B"}), "workload.global_batch_samples", "more than all samples"),
    (("workload", EXPLICIT | {"total_flops": 1e40}), "workload.total_flops", "absurdly large"),
    (("workload", EXPLICIT | {"memory_gib": "8 dogs"}), "workload.memory_gib", "80 GiB, 80 GB"),
    (
        ("workload", EXPLICIT | {"min_memory_gib_per_accelerator": 900}),
        "workload.min_memory_gib_per_accelerator",
        "the memory of the whole job",
    ),
]


@pytest.mark.parametrize(
    ("change", "field", "message"), BAD, ids=[f"{field}-{i}" for i, (_, field, _) in enumerate(BAD)]
)
def test_a_bad_field_is_named_with_what_would_be_accepted(change: tuple[Any, ...], field: str, message: str) -> None:
    faults_by_field = faults(changed(*change))
    assert list(faults_by_field) == [field]
    assert message in faults_by_field[field]


@pytest.mark.parametrize(
    ("written", "software"),
    [("tuned", "fused"), ("Megatron", "fused"), ("torch.compile", "compiled"), ("xla", "compiled"), ("eager", "eager")],
)
def test_software_may_be_named_by_what_it_is(written: str, software: str) -> None:
    assert parse_job(changed("training", "software", written), now=NOW).training.software == software


def test_unknown_software_is_refused_with_the_classes() -> None:
    message = faults(changed("training", "software", "fast"))["training.software"]
    assert all(name in message for name in ("fused", "compiled", "eager", "plain"))


def test_all_faults_are_reported_at_once() -> None:
    document = changed("deadline", "7 dogs", job=changed("budget_usd", -1, job=changed("workload", "layers", 0)))
    assert set(faults(document)) == {"deadline", "budget_usd", "workload.layers"}


def test_contradictions_of_several_fields_are_reported_at_once() -> None:
    document = changed("deadline", "2020-01-01T00:00Z", job=changed("workload", "attention_heads", 30))
    assert set(faults(document)) == {"deadline", "workload.attention_heads", "workload.kv_heads"}


def test_very_many_faults_are_counted_instead_of_listed() -> None:
    error = parse_error({f"key{i}": 1 for i in range(5000)})
    assert len(error.faults) == 21
    assert error.faults[-1].message == "and 4981 more faults"


def parse_error(document: dict[str, Any]) -> UnusableInput:
    with pytest.raises(UnusableInput) as refused:
        parse_job(document, now=NOW)
    return refused.value


def test_a_path_is_a_json_pointer_of_the_users_document() -> None:
    (fault,) = parse_error(changed("workload", "layers", 0)).faults
    assert fault.pointer == "/workload/layers"


def test_the_schema_of_a_job_describes_quantities_as_numbers_or_text() -> None:
    schema = JobDocument.model_json_schema()
    assert [choice["type"] for choice in schema["properties"]["budget_usd"]["anyOf"][0]["anyOf"]] == [
        "number",
        "string",
    ]
    assert schema["additionalProperties"] is False
    for example in schema["examples"]:
        assert parse_job(example, now=NOW)


def test_an_empty_key_is_named_as_one() -> None:
    (fault,) = parse_error(LLAMA | {"": 1}).faults
    assert str(fault).startswith("'': unknown key")


@pytest.mark.parametrize(
    ("model", "name", "assumptions"),
    [
        (
            "meta-llama/Meta-Llama-3-8B",
            "llama-3-8b",
            ("meta-llama/Meta-Llama-3-8B is planned as llama-3-8b, a model of its dimensions",),
        ),
        ("Llama 3 8B Instruct", "llama-3-8b", ()),
        ("deepseek-r1", "deepseek-r1", ()),
    ],
)
def test_another_name_of_a_preset_is_said_among_the_assumptions(
    model: str, name: str, assumptions: tuple[str, ...]
) -> None:
    job = parse_job({"workload": {"kind": "preset", "model": model, "tokens": "1B"}}, now=NOW)
    assert isinstance(job.workload, Preset)
    assert (job.name, job.workload.model) == (name, name)
    assert job.assumptions == assumptions
