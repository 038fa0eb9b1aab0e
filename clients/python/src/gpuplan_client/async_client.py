"""The client to be awaited: the same methods as `Client`."""

import os
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Literal, Self, cast

import httpx
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay

from gpuplan_client import answers
from gpuplan_client.call import AsAsked, Call, MayPass, tries, unreachable
from gpuplan_client.calls import Document, ExportFormat, Prices, delete, get, post, put, stated, text
from gpuplan_client.errors import NotDone, RunFailed
from gpuplan_client.options import DEFAULT_URL, POLL, client_options


class AsyncClient:
    """A gpuplan service at `url`, asked with an API `key` where it wants one.

    Jobs and other questions are the documents of the command line, as dictionaries; answers are typed dictionaries.
    What may pass by itself (no connection, 429, 503) is tried up to `attempts` times, as long apart as the service
    asks. Raises `GpuplanError`s. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connects on the first call."""
        self._http = httpx.AsyncClient(transport=transport, **client_options(url, key, timeout_seconds))
        self._stop = tries(attempts)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """At `GPUPLAN_URL`, with the key in `GPUPLAN_API_KEY`."""
        url = os.environ.get("GPUPLAN_URL") or DEFAULT_URL
        return cls(url, key=os.environ.get("GPUPLAN_API_KEY") or None, **options)

    async def close(self) -> None:
        """Gives the connections back."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def send[Answer](self, call: Call[Answer]) -> Answer:
        """The answer of any `Call`, also of one that has no method here."""
        request = call.sent_by(self._http)
        async for attempt in AsyncRetrying(retry=MayPass(), wait=AsAsked(), stop=call.tries(self._stop), reraise=True):
            with attempt:
                try:
                    response = await self._http.send(request)
                except httpx.HTTPError as error:
                    raise unreachable(error, request.url) from error
                return call.read(response)
        raise AssertionError("a call ends with an answer or an error")

    async def plan(
        self,
        job: Document,
        *,
        frontier: bool = False,
        snapshot: str | None = None,
        prices: Prices | None = None,
        live: bool | None = None,
    ) -> answers.PlanAnswer:
        """The cheapest plan for a job, or why there is none; stored under its id."""
        return await self.send(
            post("plans", body=job, frontier=frontier or None, snapshot=snapshot, prices=prices, live=live)
        )

    async def saved_plan(self, plan_id: str) -> answers.PlanAnswer:
        """A plan made before."""
        return await self.send(get("plans", plan_id))

    async def export(
        self,
        plan_id: str,
        to: ExportFormat,
        *,
        phase: int | None = None,
        command: str | None = None,
        image: str | None = None,
        reservation: str | None = None,
        run_limit: str | None = None,
        checkpoints: str | None = None,
    ) -> str:
        """A saved plan as a file for another tool."""
        query = {
            "phase": phase,
            "command": command,
            "image": image,
            "reservation": reservation,
            "run_limit": run_limit,
            "checkpoints": checkpoints,
        }
        return await self.send(text("plans", plan_id, "export", to, **query))

    async def estimate(self, job: Document, on: Document) -> answers.Estimate:
        """Time and memory on one given configuration, such as `{"accelerator": "H100", "gpus": 64}`."""
        return await self.send(post("estimates", body={"job": job, "on": on}))

    async def import_config(self, config: Document) -> answers.ImportAnswer:
        """The job of a configuration of another tool, as text: `{"files": {"sft.yaml": "..."}, "samples": "50k"}`."""
        return await self.send(post("import", body=config))

    async def afford(self, asked: Document) -> answers.AffordAnswer:
        """Which models a budget trains: `{"budget_usd": "50k", "deadline": "2w", "tokens": "2T"}`."""
        return await self.send(post("afford", body=asked))

    async def capacity(self, asked: Document) -> answers.CapacityAnswers:
        """How likely clouds give machines now: `{"machine": "p5.48xlarge", "nodes": 2}`, or `{"job": {...}}`."""
        return await self.send(post("capacity", body=asked))

    async def report_capacity(self, report: Document) -> answers.CapacityReport:
        """Says that a cloud refused machines, by its error code, or gave them: live chances count it for seven days."""
        return await self.send(post("capacity", "reports", body=report))

    async def why(
        self, job: Document, *, not_: str | None = None, with_: str | None = None, snapshot: str | None = None
    ) -> answers.WhyAnswer:
        """Why this plan; why `not_` (an accelerator, instance type, provider, region or price kind) is not in it, or
        what having `with_` is worth.
        """
        body = stated({"job": job, "not": not_, "with": with_})
        return await self.send(post("why", body=body, snapshot=snapshot))

    async def replan(self, under_way: Document, *, snapshot: str | None = None) -> answers.ReplanAnswer:
        """What to do with a job that runs: `{"job": ..., "since": ..., "running": {...}}`."""
        return await self.send(post("replan", body=under_way, snapshot=snapshot))

    async def verify(self, answer: answers.PlanAnswer | Document) -> answers.VerificationAnswer:
        """A plan's answer held against its snapshot, figure by figure."""
        return await self.send(post("verify", body=cast(Document, answer)))

    async def start_portfolio(
        self,
        jobs: Document,
        *,
        time_limit: float = 60.0,
        snapshot: str | None = None,
        iterations: int | None = None,
        seed: int = 0,
    ) -> answers.Run:
        """Begins to plan many jobs over shared machines; `run` and `wait` follow it."""
        return await self.send(
            post(
                "portfolios",
                body=jobs,
                headers={"Prefer": "respond-async"},
                time_limit=time_limit,
                snapshot=snapshot,
                iterations=iterations,
                seed=seed,
            )
        )

    async def portfolio(
        self,
        jobs: Document,
        *,
        time_limit: float = 60.0,
        snapshot: str | None = None,
        iterations: int | None = None,
        seed: int = 0,
    ) -> answers.PortfolioAnswer:
        """Many jobs planned over shared machines, quotas and budget: begins it and waits."""
        begun = await self.start_portfolio(
            jobs, time_limit=time_limit, snapshot=snapshot, iterations=iterations, seed=seed
        )
        ended = await self.wait(begun["id"])
        return cast(answers.PortfolioAnswer, ended["answer"])

    async def saved_portfolio(self, portfolio_id: str) -> answers.PortfolioAnswer:
        """A portfolio planned before."""
        return await self.send(get("portfolios", portfolio_id))

    async def buy(self, forecast: Document, *, snapshot: str | None = None) -> answers.DecisionAnswer:
        """Own, commit or rent for a forecast of jobs."""
        return await self.send(post("buy", body=forecast, snapshot=snapshot))

    async def saved_decision(self, decision_id: str) -> answers.DecisionAnswer:
        """A decision made before."""
        return await self.send(get("buy", decision_id))

    async def run_policy(self, question: Document) -> answers.RunPolicy:
        """What a run on interruptible machines expects, or with `now` what to do."""
        return await self.send(post("run-policies", body=question))

    async def simulation(self, question: Document) -> answers.Simulation:
        """What a run's policy would have cost over many starts."""
        return await self.send(post("simulations", body=question))

    async def ladder_simulation(self, question: Document) -> answers.LadderSimulation:
        """What the capacity ladder of a saved plan would have got over traces."""
        return await self.send(post("ladder-simulations", body=question))

    async def run(self, run_id: str) -> answers.Run:
        """How far a run is, and what came of it."""
        return await self.send(get("runs", run_id))

    async def cancel_run(self, run_id: str) -> answers.Run:
        """Ends a run, which keeps the best that it found."""
        return await self.send(delete("runs", run_id))

    async def wait(self, run_id: str, *, patience_seconds: float = 3_600.0) -> answers.Run:
        """The run once it is done. Raises `RunFailed` without an answer, `NotDone` at the end of the patience."""
        polling = AsyncRetrying(retry=retry_if_result(POLL.goes_on), wait=POLL, stop=stop_after_delay(patience_seconds))
        try:
            ended: answers.Run = await polling(self.run, run_id)
        except RetryError as error:
            raise NotDone(cast(answers.Run, error.last_attempt.result())) from None
        if ended["status"] == "failed" or (ended["answer"] is None and ended["kind"] != "refresh"):
            raise RunFailed(ended)
        return ended

    async def report_actuals(self, plan_id: str, actuals: Document) -> answers.Actual:
        """What a run of a plan measured; later estimates learn from it."""
        return await self.send(post("plans", plan_id, "actuals", body=actuals))

    async def actuals(self, plan_id: str | None = None) -> answers.Actuals:
        """What was reported on a plan, or on all."""
        of = ("plans", plan_id) if plan_id is not None else ()
        return await self.send(get(*of, "actuals"))

    async def forget_actual(self, actual_id: str) -> answers.Forgotten:
        """Removes a report."""
        return await self.send(delete("actuals", actual_id))

    async def costs(self, month: str | None = None, by: str | None = None) -> answers.Costs:
        """Planned and actual costs of a month (`2026-11`), by team, project, provider or kind."""
        return await self.send(get("costs", month=month, by=by))

    async def export_costs(self, month: str | None = None, by: str | None = None, to: str = "csv") -> str:
        """The costs of a month as CSV text, or with `to="focus"` the planned charges as a FOCUS dataset."""
        return await self.send(text("costs", "export", month=month, by=by, format=to))

    async def set_budget(self, team: str, usd: str | None) -> answers.TeamBudget:
        """Sets a team's budget for each month in US dollars; None removes it."""
        return await self.send(put("costs", "budgets", body=stated({"team": team, "usd": usd})))

    async def adopt_plan(self, plan_id: str) -> answers.PlanInCosts:
        """Counts a plan in the costs."""
        return await self.send(put("costs", "plans", plan_id))

    async def drop_plan(self, plan_id: str) -> answers.PlanInCosts:
        """Counts a plan in the costs no longer."""
        return await self.send(delete("costs", "plans", plan_id))

    async def add_watch(self, watch: Document) -> answers.Watch:
        """Has a job planned again after each refresh, and changes told to `channels`."""
        return await self.send(post("watches", body=watch))

    async def watches(self) -> answers.Watches:
        """Every watch."""
        return await self.send(get("watches"))

    async def watch(self, watch_id: str) -> answers.Watch:
        """One watch with its job and all that was told."""
        return await self.send(get("watches", watch_id))

    async def forget_watch(self, watch_id: str) -> answers.Forgotten:
        """Removes a watch."""
        return await self.send(delete("watches", watch_id))

    async def offers(
        self,
        *,
        provider: str | None = None,
        region: str | None = None,
        accelerator: str | None = None,
        kind: str | None = None,
        instance_type: str | None = None,
        geography: str | None = None,
        snapshot: str | None = None,
        limit: int = 1_000,
    ) -> AsyncIterator[answers.Offer]:
        """All offers that match, of one snapshot, `limit` to a request."""
        where = {
            "provider": provider,
            "region": region,
            "accelerator": accelerator,
            "kind": kind,
            "instance_type": instance_type,
            "geography": geography,
        }
        cursor: str | None = None
        while True:
            page: answers.Offers = await self.send(
                get("offers", cursor=cursor, snapshot=snapshot, limit=limit, **where)
            )
            for offer in page["offers"]:
                yield offer
            if (cursor := page["next_cursor"]) is None:
                return

    async def prices(
        self,
        instance_type: str,
        *,
        provider: str | None = None,
        region: str | None = None,
        zone: str | None = None,
        kind: str | None = None,
        since: str | None = None,
        limit: int = 1_000,
    ) -> AsyncIterator[answers.Price]:
        """Prices of one instance type over time, `limit` to a request."""
        where = {"provider": provider, "region": region, "zone": zone, "kind": kind, "since": since}
        cursor: str | None = None
        while True:
            page: answers.Prices = await self.send(
                get("prices", cursor=cursor, instance_type=instance_type, limit=limit, **where)
            )
            for price in page["prices"]:
                yield price
            if (cursor := page["next_cursor"]) is None:
                return

    async def diff(
        self,
        snapshot_id: str,
        *,
        against: str | None = None,
        provider: str | None = None,
        limit: int = 1_000,
        cursor: str | None = None,
    ) -> answers.SnapshotDiff:
        """What a snapshot changed against another (the one it followed), a page; `next_cursor` is that of the next."""
        query = {"cursor": cursor, "against": against, "provider": provider, "limit": limit}
        return await self.send(get("snapshots", snapshot_id, "diff", **query))

    async def accelerators(self) -> answers.Accelerators:
        """Every accelerator known, with what it can do."""
        return await self.send(get("accelerators"))

    async def presets(self) -> answers.Presets:
        """The models that a job can name."""
        return await self.send(get("presets"))

    async def snapshots(self) -> answers.Snapshots:
        """Snapshots of prices, the newest first."""
        return await self.send(get("snapshots"))

    async def start_refresh(self, *providers: str) -> answers.Refresh:
        """Begins to pull live prices of these providers, or of all; `refresh` follows it."""
        return await self.send(post("refreshes", body={"provider": list(providers)} if providers else None))

    async def refreshes(self) -> answers.Refreshes:
        """Refreshes in short, the newest first."""
        return await self.send(get("refreshes"))

    async def refresh(self, refresh_id: str) -> answers.Refresh:
        """How far a refresh is, and its report."""
        return await self.send(get("refreshes", refresh_id))

    async def keys(self) -> answers.Keys:
        """Every key without its secret, the oldest first."""
        return await self.send(get("keys"))

    async def make_key(
        self,
        name: str,
        *,
        scope: str = "plan",
        expires: str | None = None,
        requests_per_minute: int | None = None,
        plans_per_day: int | None = None,
    ) -> answers.NewKey:
        """A new key, `expires` a time or so long from now (`90d`). Its secret is in this answer and in no other.

        Tried once: one whose answer got lost is among `keys`, and is to be revoked.
        """
        limits = {"requests_per_minute": requests_per_minute, "plans_per_day": plans_per_day}
        given = {"name": name, "scope": scope, "expires": expires} | limits
        return await self.send(post("keys", body=stated(given), single_try=True))

    async def rotate_key(self, key_id: str) -> answers.NewKey:
        """The same key with another secret; the one before opens nothing any more. Tried once."""
        return await self.send(post("keys", key_id, "rotate", single_try=True))

    async def revoke_key(self, key_id: str) -> answers.Key:
        """Nobody can use the key from now on."""
        return await self.send(delete("keys", key_id))

    async def share(self, kind: Literal["plan", "run", "watch"], object_id: str) -> answers.NewShare:
        """A new link by which whoever has a key may read this object of yours. It is in this answer and in no other.

        Tried once: one whose answer got lost is among `shares`, and is to be revoked.
        """
        return await self.send(post("shares", body={kind: object_id}, single_try=True))

    async def shares(self) -> answers.Shares:
        """Every link to what is yours, the oldest first."""
        return await self.send(get("shares"))

    async def open_share(self, link: str) -> answers.SharedObject:
        """What a link leads to, which this key may read from now on."""
        return await self.send(post("shares", "open", body={"link": link}))

    async def revoke_share(self, share_id: str) -> answers.Share:
        """Nobody reads by the link from now on."""
        return await self.send(delete("shares", share_id))

    async def audit(
        self, *, since: str | None = None, who: str | None = None, limit: int = 1_000
    ) -> AsyncIterator[answers.AuditEntry]:
        """Who did what, the newest first, `limit` to a request."""
        cursor: str | None = None
        while True:
            page: answers.Audit = await self.send(get("audit", cursor=cursor, since=since, who=who, limit=limit))
            for entry in page["entries"]:
                yield entry
            if (cursor := page["next_cursor"]) is None:
                return
