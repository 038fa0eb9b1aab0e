"""A list of the user's own rates in the settings file: the name of its provider, and the file or address of the list."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from gpuplan.api.schemas.channel import checked_url, variable_name
from gpuplan.catalog.model.provider_names import OWN_RATES
from gpuplan.catalog.parsing.document_fields import Document

#: Every list is a provider of its own, which `gpuplan refresh` reads beside the others.
MOST_LISTS = 20


class RatesDocument(Document):
    """One list: the provider's name, `own-` and a word, and its `file` (from the settings file's folder) or its `url`.

    `token_from` names the environment variable of a token that is sent to the address, `private` allows an address of
    this machine or its network.
    """

    name: str
    file: Path | None = None
    private: Annotated[bool, Field(strict=True)] = False
    url: str | None = None
    token_from: str | None = None

    @field_validator("name")
    @classmethod
    def _a_name(cls, name: str) -> str:
        if not re.fullmatch(OWN_RATES, name):
            raise ValueError(f"{name[:80]!r} is not the name of a list; write own- and up to 30 of a-z, 0-9 and -")
        return name

    @field_validator("url")
    @classmethod
    def _an_address(cls, url: str | None, info: ValidationInfo) -> str | None:
        return None if url is None else checked_url(url, query=True, private=info.data.get("private", True))

    @field_validator("token_from")
    @classmethod
    def _a_variable(cls, name: str | None) -> str | None:
        return None if name is None else variable_name(name)

    @model_validator(mode="after")
    def _one_place(self) -> "RatesDocument":
        if (self.file is None) == (self.url is None):
            raise ValueError("give either file or url, where the list is")
        if self.url is None and (self.private or self.token_from is not None):
            raise ValueError("private and token_from are about a url; leave them out with a file")
        return self
