"""The course of a search: when its best plan or its bound changed, kept with the progress of its run."""

from gpuplan.catalog.parsing.json_object import JsonObject

#: Above this number of changes every second one is left out, but never the last.
MOST_POINTS = 120


class SearchHistory:
    """Changes of the best plan and of the bound in order of time: `{seconds, objective_usd, bound_usd}`."""

    def __init__(self) -> None:
        """A history without points."""
        self._points: list[JsonObject] = []

    def after(self, progress: JsonObject) -> list[JsonObject]:
        """All points, as a new list, with this progress if the plan or the bound has changed since the last."""
        point = {name: progress[name] for name in ("seconds", "objective_usd", "bound_usd")}
        if not self._points or self._points[-1] | {"seconds": point["seconds"]} != point:
            self._points.append(point)
        if len(self._points) > MOST_POINTS:
            self._points = [*self._points[:-1:2], self._points[-1]]
        return list(self._points)
