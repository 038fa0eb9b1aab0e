"""Imports of configurations that are handed over as text."""

from gpuplan.api.schemas.import_answer import ImportAnswer, ImportedFact, MissingFact
from gpuplan.api.schemas.import_request import parse_import
from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.service_context import Document, ServiceContext


class ImportService(PlannerService):
    """Reads configurations of other tools. No file is ever read."""

    def read(self, document: Document) -> ImportAnswer:
        """The job that the texts of `{"files": {...}}` describe. Raises `UnusableInput`."""
        with self._audited.question("import") as entry:
            answer = self._planner.call(answer_import, document)
            entry.outcome = "complete" if not answer.missing else "incomplete"
        return answer


def answer_import(context: ServiceContext, document: Document) -> ImportAnswer:
    """Work out the answer of `ImportService.read`; neither reads the store nor writes."""
    from gpuplan.api.imports.job_from_facts import Given, job_of
    from gpuplan.api.imports.reading import read_texts

    asked = parse_import(document)
    made = job_of(read_texts(asked.files), Given(**asked.model_dump(exclude={"files"})))
    facts = made.facts
    return ImportAnswer(
        format=facts.format,
        facts={
            name: ImportedFact(
                value=fact.value if isinstance(fact.value, bool | int | float | str) else str(fact.value),
                from_=str(fact.origin),
            )
            for name, fact in facts.in_order()
        },
        job=made.document,
        assumed=(*made.assumed, *facts.notes),
        missing=tuple(MissingFact(field=one.field, say=one.say, why=one.why) for one in made.missing),
        missing_files=tuple(facts.missing_files),
        not_understood=tuple(facts.not_understood),
    )
