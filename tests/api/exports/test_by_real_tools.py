"""Every format for which a tool's own reader can be had as a package, against that reader."""

import importlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.api.exports.test_schemas import documents, made, strings

pytestmark = pytest.mark.slow(reason="runs the tools that exports are for")

#: Words in single quotes stay as they are on purpose: they are for the shell of another machine.
MEANT = "SC2016"


def test_kubernetes_takes_every_object_strictly() -> None:
    validate: Any = importlib.import_module("kubernetes_validate").validate
    # As one list of each kind: the tool reads all schemas again for each object that it is given.
    lists: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for text in made("kubernetes")[::7] + made("jobset")[::7]:
        for document in documents(text):
            if document["kind"] == "JobSet":
                spec = document["spec"]["replicatedJobs"][0]["template"]["spec"]
                job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"], "spec": spec}
                lists["batch/v1", "Job"].append(job)
            elif not document["apiVersion"].startswith("kueue"):
                lists[document["apiVersion"], document["kind"]].append(document)
    assert len(lists["batch/v1", "Job"]) > 100
    for (version, kind), items in lists.items():
        validate({"apiVersion": version, "kind": f"{kind}List", "metadata": {}, "items": items}, "1.37", strict=True)
    # A list is read as strictly as what it holds would be by itself.
    wrong = lists["batch/v1", "Job"][-1]
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(jsonschema.ValidationError, match="imagee"):
        validate({"apiVersion": "batch/v1", "kind": "JobList", "items": [wrong]}, "1.37", strict=True)


def test_an_hcl_parser_reads_every_string_of_terraform() -> None:
    loads: Any = importlib.import_module("hcl2").loads
    all_strings: set[str] = set()
    for text in made("terraform")[::9]:
        all_strings |= set(strings({name: part for name, part in json.loads(text).items() if name != "//"}))
    lines = (f"a{i} = {json.dumps(string, ensure_ascii=False)}\n" for i, string in enumerate(sorted(all_strings)))
    assert len(loads("".join(lines))) >= len(all_strings)


@pytest.mark.parametrize("to", ["slurm", "aws-cli", "gcloud", "az", "lambda", "nebius", "runpod", "docker"])
def test_shellcheck_finds_nothing_in_any_script(to: str, tmp_path: Path) -> None:
    paths = []
    # Eleven has no factor of how many kinds, node counts and names a machine is tried with, so each is met.
    for i, text in enumerate(made(to)[:: 61 if to == "docker" else 11]):
        paths.append(tmp_path / f"{i}.sh")
        paths[-1].write_text(text, encoding="utf-8")
    tool = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [tool, "--shell=bash", f"--exclude={MEANT}", *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_pure_python_yaml_reads_what_libyaml_reads() -> None:
    for text in made("jobset")[::19]:
        assert list(yaml.safe_load_all(text)) == documents(text)
