"""What runs the pages notices what is wrong with them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, commands
from tests.docs.shell import Shell, options_of
from tests.docs.stand_ins import write

PAGE = """
<!-- not run: needs a cluster -->
```console
$ kubectl apply -k deploy/kubernetes
```

1. A list:

    ```console
    $ gpuplan offers --kind spot \\
        --limit 3  # exit code 2
    gpuplan: ...
    ```
"""


def block(text: str) -> Block:
    return Block(page="page.md", line=1, language="console", title="", text=text, not_run="")


def test_blocks_have_their_reason_and_their_commands_even_in_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    away, inside = blocks(tmp_path / "page.md")
    assert (away.not_run, inside.not_run) == ("needs a cluster", "")
    [command] = commands(inside)
    assert (command.text, command.shown, command.code) == ("gpuplan offers --kind spot --limit 3", "gpuplan: ...", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$ gpuplan version\nanother 9.9\n", "shown:\nanother"),
        ("$ gpuplan offers --kind leased\n", "ended with 2"),
        ("$ gpuplan version  # exit code 4\n", "ended with 0"),
        ("$ false\n", "ended with 1"),
    ],
)
def test_what_a_page_says_wrongly_is_told_with_the_place(
    make_shell: Callable[[], Shell], text: str, message: str
) -> None:
    with pytest.raises(AssertionError, match=message) as failure:
        make_shell().run(block(text))
    assert "page.md:1: " in str(failure.value)


@pytest.mark.parametrize("command", ["serve --prot 1", "worker --queues", "keys make", "nothing"])
def test_options_that_a_command_has_not_are_told_without_running_it(command: str) -> None:
    with pytest.raises(Exception, match=r"prot|requires an argument|no command"):
        options_of(command.split())


def test_a_variable_is_what_the_shell_makes_of_it(make_shell: Callable[[], Shell]) -> None:
    shell = make_shell()
    shell.run(
        block("$ export SECRET=$(openssl rand -base64 32) PLACE=us-east-1\n$ echo $PLACE ${#SECRET}\nus-east-1 44\n")
    )


def test_stand_ins_do_what_the_programs_do(make_shell: Callable[[], Shell], tmp_path: Path) -> None:
    shell = make_shell()
    for name in ("curl", "openssl"):
        write(tmp_path / "bin", ROOT, name)
    shell.run(block("$ bin/openssl rand -hex 4 | wc -c\n9\n"))
    shell.run(block("$ bin/curl -s http://127.0.0.1:8080/v1/plans -H 'Content-Type: text/plain' -d x\n{...415...\n"))


def test_ids_of_a_page_stand_for_those_of_this_run(make_shell: Callable[[], Shell]) -> None:
    shell = make_shell()
    shell.run(
        block("$ gpuplan keys create --name ci\ngpk_3d456ee1a817_j8x5_rUBQsHc2wjmaEAcROu1FWpz77-GC_jWhhxQsjI\n...\n")
    )
    shell.run(block("$ gpuplan keys revoke 3d456ee1a817\n3d456ee1a817 (ci) is revoked.\n"))
    with pytest.raises(AssertionError, match="no key"):
        shell.run(block("$ gpuplan keys revoke 000000000000000\n"))
