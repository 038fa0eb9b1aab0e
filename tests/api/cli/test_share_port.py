"""Processes share a port only if all of them say so."""

import pytest

from gpuplan.api.cli.listening_socket import listen
from gpuplan.catalog.runtime.errors import UnusableInput


def test_a_port_is_shared_by_those_who_say_so() -> None:
    with listen("127.0.0.1", 0, share=True) as first:
        port = first.getsockname()[1]
        with listen("127.0.0.1", port, share=True) as second:
            assert second.getsockname()[1] == port
        with pytest.raises(UnusableInput, match="port: cannot listen"):
            listen("127.0.0.1", port)


def test_a_port_that_is_not_shared_is_taken() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(UnusableInput, match="port: cannot listen"):
        listen("127.0.0.1", first.getsockname()[1], share=True)
