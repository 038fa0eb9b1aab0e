"""Ids in the paths of operations, each with an example in the form that the service creates."""

from typing import Annotated

from fastapi import Path

PlanId = Annotated[str, Path(examples=["plan-751d7a5c37e52c2c94da"])]
PortfolioId = Annotated[str, Path(examples=["portfolio-20261121T080000-920d4b84e66e"])]
DecisionId = Annotated[str, Path(examples=["buy-751d7a5c37e52c2c94da"])]
RunId = Annotated[str, Path(examples=["portfolio-20261121T080000-920d4b84e66e"])]
ActualId = Annotated[str, Path(examples=["run-a0f01201eacf253b"])]
WatchId = Annotated[str, Path(examples=["watch-a0f01201eacf253b"])]
RefreshId = Annotated[str, Path(examples=["refresh-20261121T020000-41328e248343"])]
KeyId = Annotated[str, Path(examples=["0a1b2c3d4e5f"])]
ShareId = Annotated[str, Path(examples=["0f1e2d3c4b5a"])]
SnapshotId = Annotated[str, Path(examples=["c7d92d374907695d66b10ab6c0a42b43"])]
