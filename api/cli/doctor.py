"""`gpuplan doctor`: what works, what is missing, what to do."""

from typing import Annotated

import typer

from api.cli.documents import print_json
from api.cli.plan import AsJson, InventoryFile, SettingsFile
from api.cli.standard_output import answers
from api.render.text import plain

EXIT_BROKEN = 3
_SIGNS = {"ok": "ok     ", "warning": "warning", "broken": "BROKEN "}


def doctor(
    *,
    online: Annotated[
        bool, typer.Option("--online", help="Also ask each cloud once; nothing of it costs anything.")
    ] = False,
    host: Annotated[str, typer.Option(help="Where the service is to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port of the service.")] = 8080,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Check the set-up: what works, what is missing, what to do. Ends with 0 unless something is broken (3)."""
    from api.doctor.examine import examine

    given = {name: path for name, path in (("inventory", inventory), ("settings", settings)) if path is not None}
    answer = examine(given, online=online, host=host, port=port)
    if as_json:
        print_json(answer)
    else:
        for each in answer["findings"]:
            advice = f"\n         -> {plain(each['advice'])}" if each["advice"] else ""
            answers().write(f"{_SIGNS[each['status']]}  {each['name']}: {plain(each['found'])}{advice}\n")
        answers().write(f"{'something is broken' if answer['outcome'] == 'broken' else 'fine'}\n")
    if answer["outcome"] == "broken":
        raise typer.Exit(EXIT_BROKEN)
