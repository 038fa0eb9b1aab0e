"""Text inside Terraform's strings: what it would expand is doubled, what is to be expanded is left alone."""

from collections.abc import Iterable


def literal(text: str) -> str:
    """Text that Terraform takes as it stands: https://developer.hashicorp.com/terraform/language/expressions/strings"""
    return text.replace("${", "$${").replace("%{", "%%{")


def script(lines: Iterable[str]) -> str:
    """A shell script as a literal."""
    return literal("\n".join(lines) + "\n")


def variable(description: str, *, default: str | None = None) -> dict[str, str]:
    """An input variable of text, asked for unless it has a default."""
    return {"type": "string", "description": description} | ({} if default is None else {"default": default})
