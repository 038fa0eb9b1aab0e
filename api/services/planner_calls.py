"""Runs functions that work out an answer: in this process, or in one of a service's planning processes."""

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Protocol

from gpuplan.api.services.service_context import ServiceContext


class ProcessPool(Protocol):
    """Processes that each hold a `ServiceContext` of their own."""

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return `function(context, *args, **kwargs)`, worked out in one of the processes."""


class PlannerCalls:
    """Calls functions of `(context, ...)` that read the store and write nothing."""

    def __init__(self, context: ServiceContext) -> None:
        """Call functions in this process, until `use` names others."""
        self._context = context
        self.processes: ProcessPool | None = None

    def use(self, processes: ProcessPool) -> None:
        """Call functions in these processes from now on. The caller starts and stops the processes."""
        self.processes = processes

    def call[**Parameters, Answer](
        self,
        function: Callable[Concatenate[ServiceContext, Parameters], Answer],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Answer:
        """Return what a module-level `function` answers. Raises what the function raises."""
        if self.processes is None:
            return function(self._context, *args, **kwargs)
        answer: Answer = self.processes.call(function, args, kwargs)
        return answer
