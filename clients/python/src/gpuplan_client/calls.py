"""Every operation of the service as a `Call`: where it is asked, with what, and what it answers."""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from gpuplan_client import answers
from gpuplan_client.call import Call

type Document = Mapping[str, Any]
type Prices = Literal["expected", "as-observed"]
type ExportFormat = Literal[
    "skypilot",
    "dstack",
    "terraform",
    "kubernetes",
    "jobset",
    "slurm",
    "aws-cli",
    "gcloud",
    "az",
    "lambda",
    "nebius",
    "runpod",
    "docker",
    "focus",
    "json",
]


def _at(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _get[Answer](answer: type[Answer], *path: str, **query: Any) -> Call[Answer]:
    return Call(method="GET", path=_at(*path), query=query)


def _post[Answer](answer: type[Answer], *path: str, body: Document | None = None, **query: Any) -> Call[Answer]:
    return Call(method="POST", path=_at(*path), query=query, body=body)


def _delete[Answer](answer: type[Answer], *path: str) -> Call[Answer]:
    return Call(method="DELETE", path=_at(*path))


def _put[Answer](answer: type[Answer], *path: str, body: Document | None = None) -> Call[Answer]:
    return Call(method="PUT", path=_at(*path), body=body)


def plan(
    job: Document, *, frontier: bool, snapshot: str | None, prices: Prices | None, live: bool | None
) -> Call[answers.PlanAnswer]:
    """`POST /v1/plans`."""
    query = {"frontier": frontier or None, "snapshot": snapshot, "prices": prices, "live": live}
    return Call(method="POST", path="/v1/plans", body=job, query=query)


def saved_plan(plan_id: str) -> Call[answers.PlanAnswer]:
    """`GET /v1/plans/{id}`."""
    return Call(method="GET", path=_at("plans", plan_id))


def export(plan_id: str, to: ExportFormat, **query: Any) -> Call[str]:
    """`GET /v1/plans/{id}/export/{format}`."""
    return Call(method="GET", path=_at("plans", plan_id, "export", to), query=query, text=True)


def estimate(job: Document, on: Document) -> Call[answers.Estimate]:
    """`POST /v1/estimates`."""
    return _post(answers.Estimate, "estimates", body={"job": job, "on": on})


def import_config(config: Document) -> Call[answers.ImportAnswer]:
    """`POST /v1/import`."""
    return _post(answers.ImportAnswer, "import", body=config)


def afford(asked: Document) -> Call[answers.AffordAnswer]:
    """`POST /v1/afford`."""
    return _post(answers.AffordAnswer, "afford", body=asked)


def capacity(asked: Document) -> Call[answers.CapacityAnswers]:
    """`POST /v1/capacity`."""
    return _post(answers.CapacityAnswers, "capacity", body=asked)


def report_capacity(report: Document) -> Call[answers.CapacityReport]:
    """`POST /v1/capacity/reports`."""
    return _post(answers.CapacityReport, "capacity/reports", body=report)


def why(job: Document, *, not_: str | None, with_: str | None, snapshot: str | None) -> Call[answers.WhyAnswer]:
    """`POST /v1/why`."""
    named = {"not": not_, "with": with_}
    body = {"job": job} | {name: text for name, text in named.items() if text is not None}
    return _post(answers.WhyAnswer, "why", body=body, snapshot=snapshot)


def replan(under_way: Document, *, snapshot: str | None) -> Call[answers.ReplanAnswer]:
    """`POST /v1/replan`."""
    return _post(answers.ReplanAnswer, "replan", body=under_way, snapshot=snapshot)


def verify(answer: Document) -> Call[answers.VerificationAnswer]:
    """`POST /v1/verify`."""
    return _post(answers.VerificationAnswer, "verify", body=answer)


def portfolio(
    jobs: Document, *, time_limit: float, snapshot: str | None, iterations: int | None, seed: int
) -> Call[answers.Run]:
    """`POST /v1/portfolios`, always as a run."""
    query = {"time_limit": time_limit, "snapshot": snapshot, "iterations": iterations, "seed": seed}
    headers = {"Prefer": "respond-async"}
    return Call(method="POST", path="/v1/portfolios", body=jobs, query=query, headers=headers)


def saved_portfolio(portfolio_id: str) -> Call[answers.PortfolioAnswer]:
    """`GET /v1/portfolios/{id}`."""
    return _get(answers.PortfolioAnswer, "portfolios", portfolio_id)


def buy(forecast: Document, *, snapshot: str | None) -> Call[answers.DecisionAnswer]:
    """`POST /v1/buy`."""
    return Call(method="POST", path="/v1/buy", body=forecast, query={"snapshot": snapshot})


def saved_decision(decision_id: str) -> Call[answers.DecisionAnswer]:
    """`GET /v1/buy/{id}`."""
    return Call(method="GET", path=_at("buy", decision_id))


def run_policy(question: Document) -> Call[answers.RunPolicy]:
    """`POST /v1/run-policies`."""
    return Call(method="POST", path=_at("run-policies"), body=question)


def simulation(question: Document) -> Call[answers.Simulation]:
    """`POST /v1/simulations`."""
    return _post(answers.Simulation, "simulations", body=question)


def ladder_simulation(question: Document) -> Call[answers.LadderSimulation]:
    """`POST /v1/ladder-simulations`."""
    return _post(answers.LadderSimulation, "ladder-simulations", body=question)


def run(run_id: str) -> Call[answers.Run]:
    """`GET /v1/runs/{id}`."""
    return _get(answers.Run, "runs", run_id)


def cancel_run(run_id: str) -> Call[answers.Run]:
    """`DELETE /v1/runs/{id}`."""
    return _delete(answers.Run, "runs", run_id)


def report_actuals(plan_id: str, actuals: Document) -> Call[answers.Actual]:
    """`POST /v1/plans/{id}/actuals`."""
    return _post(answers.Actual, "plans", plan_id, "actuals", body=actuals)


def actuals(plan_id: str | None) -> Call[answers.Actuals]:
    """`GET /v1/plans/{id}/actuals`, or of all plans."""
    return _get(answers.Actuals, *(("actuals",) if plan_id is None else ("plans", plan_id, "actuals")))


def forget_actual(actual_id: str) -> Call[answers.Forgotten]:
    """`DELETE /v1/actuals/{id}`."""
    return _delete(answers.Forgotten, "actuals", actual_id)


def costs(month: str | None, by: str | None) -> Call[answers.Costs]:
    """`GET /v1/costs`."""
    return _get(answers.Costs, "costs", month=month, by=by)


def export_costs(month: str | None, by: str | None, to: str) -> Call[str]:
    """`GET /v1/costs/export`."""
    query = {"month": month, "by": by, "format": to}
    return Call(method="GET", path=_at("costs", "export"), query=query, text=True)


def set_budget(team: str, usd: str | None) -> Call[answers.TeamBudget]:
    """`PUT /v1/costs/budgets`."""
    return _put(answers.TeamBudget, "costs", "budgets", body={"team": team} | ({} if usd is None else {"usd": usd}))


def adopt_plan(plan_id: str) -> Call[answers.PlanInCosts]:
    """`PUT /v1/costs/plans/{id}`."""
    return _put(answers.PlanInCosts, "costs", "plans", plan_id)


def drop_plan(plan_id: str) -> Call[answers.PlanInCosts]:
    """`DELETE /v1/costs/plans/{id}`."""
    return _delete(answers.PlanInCosts, "costs", "plans", plan_id)


def add_watch(watch: Document) -> Call[answers.Watch]:
    """`POST /v1/watches`."""
    return Call(method="POST", path=_at("watches"), body=watch)


def watches() -> Call[answers.Watches]:
    """`GET /v1/watches`."""
    return _get(answers.Watches, "watches")


def watch(watch_id: str) -> Call[answers.Watch]:
    """`GET /v1/watches/{id}`."""
    return Call(method="GET", path=_at("watches", watch_id))


def forget_watch(watch_id: str) -> Call[answers.Forgotten]:
    """`DELETE /v1/watches/{id}`."""
    return _delete(answers.Forgotten, "watches", watch_id)


def offers(*, cursor: str | None, **filters: Any) -> Call[answers.Offers]:
    """One page of `GET /v1/offers`."""
    return _get(answers.Offers, "offers", cursor=cursor, **filters)


def prices(*, cursor: str | None, **filters: Any) -> Call[answers.Prices]:
    """One page of `GET /v1/prices`."""
    return _get(answers.Prices, "prices", cursor=cursor, **filters)


def diff(snapshot_id: str, *, cursor: str | None, **filters: Any) -> Call[answers.SnapshotDiff]:
    """One page of `GET /v1/snapshots/{id}/diff`."""
    return _get(answers.SnapshotDiff, "snapshots", snapshot_id, "diff", cursor=cursor, **filters)


def accelerators() -> Call[answers.Accelerators]:
    """`GET /v1/accelerators`."""
    return _get(answers.Accelerators, "accelerators")


def presets() -> Call[answers.Presets]:
    """`GET /v1/presets`."""
    return _get(answers.Presets, "presets")


def snapshots() -> Call[answers.Snapshots]:
    """`GET /v1/snapshots`."""
    return _get(answers.Snapshots, "snapshots")


def start_refresh(providers: tuple[str, ...]) -> Call[answers.Refresh]:
    """`POST /v1/refreshes`; every provider where none is named."""
    body = {"provider": list(providers)} if providers else None
    return Call(method="POST", path=_at("refreshes"), body=body)


def refreshes() -> Call[answers.Refreshes]:
    """`GET /v1/refreshes`."""
    return _get(answers.Refreshes, "refreshes")


def refresh(refresh_id: str) -> Call[answers.Refresh]:
    """`GET /v1/refreshes/{id}`."""
    return Call(method="GET", path=_at("refreshes", refresh_id))


def keys() -> Call[answers.Keys]:
    """`GET /v1/keys`."""
    return _get(answers.Keys, "keys")


def make_key(key: Document) -> Call[answers.NewKey]:
    """`POST /v1/keys`."""
    return Call(method="POST", path="/v1/keys", body=key, single_try=True)


def rotate_key(key_id: str) -> Call[answers.NewKey]:
    """`POST /v1/keys/{id}/rotate`."""
    return Call(method="POST", path=_at("keys", key_id, "rotate"), single_try=True)


def revoke_key(key_id: str) -> Call[answers.Key]:
    """`DELETE /v1/keys/{id}`."""
    return _delete(answers.Key, "keys", key_id)


def share(kind: str, object_id: str) -> Call[answers.NewShare]:
    """`POST /v1/shares`."""
    return Call(method="POST", path="/v1/shares", body={kind: object_id}, single_try=True)


def shares() -> Call[answers.Shares]:
    """`GET /v1/shares`."""
    return _get(answers.Shares, "shares")


def open_share(link: str) -> Call[answers.SharedObject]:
    """`POST /v1/shares/open`."""
    return _post(answers.SharedObject, "shares", "open", body={"link": link})


def revoke_share(share_id: str) -> Call[answers.Share]:
    """`DELETE /v1/shares/{id}`."""
    return _delete(answers.Share, "shares", share_id)


def audit(*, cursor: str | None, **filters: Any) -> Call[answers.Audit]:
    """One page of `GET /v1/audit`."""
    return _get(answers.Audit, "audit", cursor=cursor, **filters)
