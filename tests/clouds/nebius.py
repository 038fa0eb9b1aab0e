"""Nebius' gRPC services on one local port, with protobuf's own library: projects, platforms, estimates and advice."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
)

TOKEN = "a-token-of-nebius"
_TYPES = {"text": 9, "int": 5, "long": 3, "flag": 8, "message": 11}
#: Messages of nebius/api: (field, number, type or message), a list if the name ends with `*`.
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "Metadata": [("id", 1, "text"), ("parent_id", 2, "text"), ("name", 3, "text"), ("resource_version", 4, "long")],
    "List": [("parent_id", 1, "text"), ("page_size", 2, "long"), ("page_token", 3, "text")],
    "ListTenants": [("page_size", 1, "long"), ("page_token", 2, "text")],
    "ListPlatforms": [("page_size", 1, "long"), ("page_token", 2, "text"), ("parent_id", 3, "text")],
    "ContainerStatus": [("region", 4, "text")],
    "Container": [("metadata", 1, "Metadata"), ("status", 3, "ContainerStatus")],
    "Containers": [("items*", 1, "Container"), ("next_page_token", 2, "text")],
    "Resources": [("vcpu_count", 1, "int"), ("memory_gibibytes", 3, "int"), ("gpu_count", 4, "int")],
    "Preset": [("name", 1, "text"), ("resources", 2, "Resources"), ("allow_gpu_clustering", 3, "flag")],
    "PlatformSpec": [
        ("presets*", 1, "Preset"),
        ("gpu_count_quota_type", 3, "text"),
        ("human_readable_name", 4, "text"),
        ("gpu_memory_gigabytes", 12, "int"),
    ],
    "PlatformStatus": [("allowed_for_preemptibles", 3, "flag")],
    "Platform": [("metadata", 1, "Metadata"), ("spec", 2, "PlatformSpec"), ("status", 3, "PlatformStatus")],
    "Platforms": [("items*", 1, "Platform"), ("next_page_token", 2, "text")],
    "ResourcesSpec": [("platform", 1, "text"), ("preset", 2, "text")],
    "Preemptible": [("on_preemption", 1, "int"), ("priority", 2, "int")],
    "InstanceSpec": [("resources", 2, "ResourcesSpec"), ("preemptible", 19, "Preemptible")],
    "CreateInstance": [("metadata", 1, "Metadata"), ("spec", 2, "InstanceSpec")],
    "ResourceSpec": [("compute_instance_spec", 100, "CreateInstance")],
    "EstimateRequest": [("resource_spec", 1, "ResourceSpec")],
    "Cost": [("cost", 2, "text"), ("cost_rounded", 3, "text")],
    "General": [("total", 1, "Cost")],
    "Group": [("general", 10, "General")],
    "Estimate": [("hourly_cost", 10, "Group"), ("monthly_cost", 20, "Group")],
    "Availability": [
        ("data_state", 1, "int"),
        ("available", 2, "int"),
        ("limit", 4, "int"),
        ("availability_level", 5, "int"),
    ],
    "AdviceStatus": [
        ("reserved", 1, "Availability"),
        ("on_demand", 2, "Availability"),
        ("preemptible", 3, "Availability"),
    ],
    "AdvicePreset": [("name", 1, "text")],
    "AdviceInstance": [("platform", 1, "text"), ("preset", 2, "AdvicePreset"), ("gpu_memory_gigabytes", 3, "int")],
    "AdviceSpec": [("region", 1, "text"), ("fabric", 2, "text"), ("compute_instance", 10, "AdviceInstance")],
    "Advice": [("metadata", 1, "Metadata"), ("spec", 2, "AdviceSpec"), ("status", 3, "AdviceStatus")],
    "AdviceList": [("items*", 1, "Advice"), ("next_page_token", 2, "text")],
}
_METHODS = {
    "/nebius.iam.v1.TenantService/List": ("ListTenants", "Containers"),
    "/nebius.iam.v1.ProjectService/List": ("List", "Containers"),
    "/nebius.compute.v1.PlatformService/List": ("ListPlatforms", "Platforms"),
    "/nebius.billing.v1alpha1.CalculatorService/Estimate": ("EstimateRequest", "Estimate"),
    "/nebius.capacity.v1.ResourceAdviceService/List": ("List", "AdviceList"),
}
FRESH, STALE = 1, 2
HIGH, MEDIUM, LOW, LIMIT_REACHED = 1, 2, 3, 4


@cache
def message_class(name: str) -> Any:
    """The class of a message, built by protobuf from its fields."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="nebius.proto", package="t", syntax="proto3")
    for message, message_fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for label, number, kind in message_fields:
            described.field.add(
                name=label.rstrip("*"),
                number=number,
                type=_TYPES.get(kind, _TYPES["message"]),
                label=3 if label.endswith("*") else 1,
                type_name=None if kind in _TYPES else f".t.{kind}",
            )
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))


def platform(
    name: str = "gpu-h200-sxm", gb: int = 141, *, preemptible: bool = True, presets: Any = None
) -> dict[str, Any]:
    """A platform with a preset of one GPU and a preset of eight that can be joined, unless `presets` are given."""
    usual = [preset("1gpu-16vcpu-200gb", 1), preset("8gpu-128vcpu-1600gb", 8, joins=True)]
    return {
        "metadata": {"id": f"computeplatform-{name}", "name": name, "resource_version": "7"},
        "spec": {"presets": usual if presets is None else presets, "gpu_memory_gigabytes": gb},
        "status": {"allowed_for_preemptibles": preemptible},
    }


def preset(name: str, gpus: int, *, joins: bool = False) -> dict[str, Any]:
    """One preset."""
    resources = {"vcpu_count": 16 * max(1, gpus), "memory_gibibytes": 200 * max(1, gpus), "gpu_count": gpus}
    return {"name": name, "resources": resources, "allow_gpu_clustering": joins}


def advice(region: str, name: str, of: str, on_demand: Any, preemptible: Any = None) -> dict[str, Any]:
    """What the advisor says of a preset in a region: (data state, level, machines) on demand and preemptible."""
    fields = ("data_state", "availability_level", "available")
    status = {
        kind: dict(zip(fields, given, strict=True))
        for kind, given in (("on_demand", on_demand), ("preemptible", preemptible))
        if given
    }
    instance = {"platform": name, "preset": {"name": of}, "gpu_memory_gigabytes": 141}
    return {"spec": {"region": region, "fabric": "fabric-7", "compute_instance": instance}, "status": status}


@dataclass(slots=True, kw_only=True)
class Nebius:
    """What the account sees; `cost` prices (platform, preset, preemptible). `page` items are on a page."""

    projects: dict[str, str] = field(default_factory=lambda: {"p-eu": "eu-north1", "p-us": "us-central1"})
    platforms: dict[str, Any] = field(
        default_factory=lambda: {
            "p-eu": [platform(), platform("cpu-d3", 0, presets=[preset("4vcpu-16gb", 0)])],
            "p-us": [platform()],
        }
    )
    cost: Callable[[str, str, bool], str] = lambda _, preset_name, spot: str(
        (2.5 if spot else 4.5) * int(preset_name[0])
    )
    advice: list[Any] = field(default_factory=list)
    page: int = 1
    failures: dict[str, Any] = field(default_factory=dict)
    latency_seconds: float = 0.0
    calls: list[str] = field(default_factory=list)

    def answer(self, method: str, asked: Any) -> dict[str, Any]:
        """The answer to one call as protojson."""
        if method.endswith("Estimate"):
            instance = asked.resource_spec.compute_instance_spec
            assert instance.metadata.parent_id in self.projects
            spot = instance.spec.HasField("preemptible")
            assert not spot or (instance.spec.preemptible.on_preemption, instance.spec.preemptible.priority) == (1, 3)
            size = instance.spec.resources
            return {"hourly_cost": {"general": {"total": {"cost": self.cost(size.platform, size.preset, spot)}}}}
        items: list[Any] = [{"metadata": {"id": "tenant-1"}}]
        if "ProjectService" in method:
            assert asked.parent_id == "tenant-1"
            items = [{"metadata": {"id": name}, "status": {"region": region}} for name, region in self.projects.items()]
        elif "PlatformService" in method:
            items = self.platforms[asked.parent_id]
        elif "ResourceAdvice" in method:
            items = self.advice
        start = int(asked.page_token or 0)
        after = start + self.page
        return {"items": items[start:after], "next_page_token": str(after) if after < len(items) else ""}

    @contextmanager
    def running(self) -> Iterator[str]:
        """The address of a server with these answers."""
        server = grpc.server(ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((_Handlers(self),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, cloud: Nebius) -> None:
        self.cloud = cloud

    def service(self, handler_call_details: Any) -> Any:
        """A handler for every method of the table."""
        method = handler_call_details.method
        if method not in _METHODS:
            return None
        name, answer = _METHODS[method]

        def handle(request: bytes, context: Any) -> bytes:
            self.cloud.calls.append(method)
            time.sleep(self.cloud.latency_seconds)
            if ("authorization", f"Bearer {TOKEN}") not in [tuple(pair) for pair in context.invocation_metadata()]:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is invalid")
            failure = next((code for part, code in self.cloud.failures.items() if part in method), None)
            if isinstance(failure, list):
                failure = failure.pop() if failure else None
            if isinstance(failure, bytes):
                return failure
            if failure is not None:
                context.abort(failure, "as told")
            document = self.cloud.answer(method, message_class(name).FromString(request))
            return bytes(json_format.ParseDict(document, message_class(answer)()).SerializeToString())

        return grpc.unary_unary_rpc_method_handler(handle)
