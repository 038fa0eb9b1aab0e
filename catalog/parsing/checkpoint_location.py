"""The location of a job's checkpoints: a cloud bucket, or a file system that every machine mounts."""

import re
from dataclasses import dataclass

from gpuplan.catalog.parsing.quantities import shown

ACCEPTED = (
    "s3://bucket/path, gs://bucket/path, abfs://container@account.dfs.core.windows.net/path, or /mnt/path for a"
    " file system that every machine mounts"
)
EXAMPLES = ("s3://my-bucket/llama-3-8b", "gs://my-bucket/llama-3-8b", "/mnt/checkpoints/llama-3-8b")
LONGEST = 500
#: Bucket names by the rules of the clouds; paths only in characters without meaning to shells, YAML and URLs.
#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
#: https://cloud.google.com/storage/docs/buckets#naming
#: https://learn.microsoft.com/azure/storage/blobs/data-lake-storage-introduction-abfs-uri
_PATH = r"(?P<path>(?:/[A-Za-z0-9_=+.-]+)*)/?"
_FORMS = {
    "s3": re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])" + _PATH),
    "gs": re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])" + _PATH),
    "abfs": re.compile(
        r"abfss?://(?P<bucket>[a-z0-9](?:-?[a-z0-9]){2,62})@(?P<account>[a-z0-9]{3,24})\.dfs\.core\.windows\.net"
        + _PATH
    ),
    "mount": re.compile(r"/mnt(?P<path>(?:/[A-Za-z0-9_=+.-]+)+)/?"),
}
#: The cloud that a bucket of the scheme belongs to.
CLOUD_OF = {"s3": "aws", "gs": "gcp", "abfs": "azure"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLocation:
    """A location for checkpoints: `kind` is s3, gs, abfs or mount; `account` is a storage account of Azure.

    `path` begins with a slash or is empty; that of a mount is below `/mnt`.
    """

    kind: str
    bucket: str
    account: str
    path: str

    @property
    def text(self) -> str:
        """The location as a user writes it, without a trailing slash."""
        if self.kind == "mount":
            return f"/mnt{self.path}"
        if self.kind == "abfs":
            return f"abfs://{self.bucket}@{self.account}.dfs.core.windows.net{self.path}"
        return f"{self.kind}://{self.bucket}{self.path}"


def read_checkpoint_location(value: object) -> CheckpointLocation:
    """The location that a text names. Raises `ValueError` with the four forms that are accepted."""
    if isinstance(value, str) and len(value) <= LONGEST:
        for kind, form in _FORMS.items():
            match = form.fullmatch(value.strip())
            if match is not None and not _climbs(match["path"]):
                parts = {"bucket": "", "account": ""} | match.groupdict()
                return CheckpointLocation(kind=kind, **parts)
    raise ValueError(f"{shown(value)} is not a checkpoint location; write {ACCEPTED}")


def checkpoint_location(value: object) -> str:
    """The text of a location, checked; for the field of a job. Raises `ValueError` like `read_checkpoint_location`."""
    return read_checkpoint_location(value).text


def _climbs(path: str) -> bool:
    return any(part in (".", "..") for part in path.split("/"))
