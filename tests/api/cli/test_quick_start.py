"""A command loads what it needs: in a process of its own, since what is loaded there stays."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

JOB = Path(__file__).parents[3] / "examples" / "llama-3-8b.yaml"


def said(program: str, *arguments: str, **variables: str) -> Any:
    """The JSON that the last line of a program on standard error is."""
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    return json.loads(ran.stderr.splitlines()[-1])


def test_a_plan_loads_neither_readers_of_logs_nor_the_services_libraries(database_url: str) -> None:
    program = (
        "import json, sys; from api.cli.main import main; code = main();"
        "print(json.dumps([code, sorted({each.partition('.')[0] for each in sys.modules})]), file=sys.stderr)"
    )
    code, loaded = said(program, "plan", str(JOB), "--json", GPUPLAN_DATABASE_URL=database_url)
    assert code == 0
    assert not {"cpsat_logutils", "pydantic_settings", "fastapi", "uvicorn", "alembic", "rich"} & set(loaded)


def test_a_package_that_is_loaded_on_demand_is_all_there_once_it_is_used() -> None:
    program = (
        "import json, sys; from api.cli.quick_start import load_on_demand; load_on_demand('orloge'); import orloge;"
        "before = 'orloge.base' in sys.modules; from orloge.base import LogFile; from orloge import CBC;"
        "print(json.dumps([before, issubclass(CBC, LogFile), sys.modules['orloge'].CBC is orloge.CBC,"
        " callable(orloge.get_info_solver)]), file=sys.stderr)"
    )
    assert said(program) == [False, True, True, True]


def test_a_package_that_is_loaded_or_missing_is_left_as_it_is() -> None:
    program = (
        "import json, sys; from api.cli.quick_start import load_on_demand; load_on_demand('json');"
        "load_on_demand('no_such_package'); import json as again;"
        "print(json.dumps([again is json, 'no_such_package' in sys.modules]), file=sys.stderr)"
    )
    assert said(program) == [True, False]
