"""Which libraries a command loads, tested in a process of its own because loaded modules stay loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

JOB = Path(__file__).parents[3] / "examples" / "llama-3-8b.yaml"


def answer_of(program: str, *arguments: str, **variables: str) -> Any:
    """The JSON that the last line of a program on standard error is."""
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    return json.loads(ran.stderr.splitlines()[-1])


def test_a_plan_loads_no_library_of_the_service(database_url: str) -> None:
    program = (
        "import json, sys; from gpuplan.api.cli.main import main; code = main();"
        "print(json.dumps([code, sorted({each.partition('.')[0] for each in sys.modules})]), file=sys.stderr)"
    )
    code, loaded = answer_of(program, "plan", str(JOB), "--json", GPUPLAN_DATABASE_URL=database_url)
    assert code == 0
    assert not {"pydantic_settings", "fastapi", "uvicorn", "alembic", "rich"} & set(loaded)
