"""The constraints part of a job document."""

from gpuplan.api.schemas.job_fields import DerivedDocument
from gpuplan.catalog.model.accelerators import accelerator_family
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.planner.model.job import MAX_PHASES, Constraints


class ConstraintsDocument(DerivedDocument, of=Constraints):
    """Constraints on the choice; an empty or missing list means no restriction."""

    def constraints(self) -> Constraints:
        """The planner's constraints, without duplicate names."""
        given = dict(self)
        given["accelerators"] = tuple(name for text in self.accelerators for name in accelerator_family(text))
        unique = {name: tuple(dict.fromkeys(value)) for name, value in given.items() if isinstance(value, tuple)}
        unique["partitions"] = unique["partitions"] or ("commercial",)
        return Constraints(**given | unique | {"max_phases": min(self.max_phases, MAX_PHASES)})

    def notes(self) -> list[str]:
        """Notes: how an ambiguous accelerator name was read, and that three phases are read as two."""
        families = {text: accelerator_family(text) for text in self.accelerators}
        notes = [
            f"accelerators: {shown(text)} means any of {', '.join(names)}"
            for text, names in families.items()
            if len(names) > 1
        ]
        if self.max_phases > MAX_PHASES:
            notes.append(
                f"constraints.max_phases of {self.max_phases} is read as {MAX_PHASES}: plans have at most two phases"
            )
        return notes
