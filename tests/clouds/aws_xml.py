"""EC2's XML, written by the SDK's own model of each answer from the values that boto3 would give back."""

from datetime import datetime
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import botocore.session  # type: ignore[import-untyped]

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


def ec2_answer(action: str, values: dict[str, Any]) -> bytes:
    """The body of a successful answer; an empty NextToken is written as an empty element, as EC2 does."""
    shape = _model().operation_model(action).output_shape
    inner = "".join(_element(shape.members[name], value, name) for name, value in values.items())
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{NAMESPACE}"><requestId>r</requestId>'
    return f"{head}{inner}</{action}Response>".encode()


def ec2_error(code: str, message: str) -> bytes:
    """The body of a refusal."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error></Errors><RequestID>r</RequestID></Response>"
    ).encode()


@cache
def _model() -> Any:
    return botocore.session.get_session().get_service_model("ec2")


def _element(shape: Any, value: Any, name: str) -> str:
    tag = shape.serialization.get("name", name)
    if value is None:
        return ""
    if shape.type_name == "structure":
        inner = "".join(_element(shape.members[key], item, key) for key, item in value.items())
    elif shape.type_name == "list":
        inner = "".join(_element(shape.member, item, "item") for item in value)
    elif shape.type_name == "timestamp":
        inner = value.strftime("%Y-%m-%dT%H:%M:%S.000Z") if isinstance(value, datetime) else str(value)
    elif shape.type_name == "boolean":
        inner = "true" if value else "false"
    else:
        inner = escape(str(value))
    return f"<{tag}>{inner}</{tag}>" if inner else f"<{tag}/>"
