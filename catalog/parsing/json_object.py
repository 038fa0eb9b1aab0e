"""The type of a JSON object that is read, repeated as it was read, or written."""

from typing import Any

type JsonObject = dict[str, Any]
