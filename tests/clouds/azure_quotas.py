"""A local Resource Manager of Azure that states the usages of Compute by location, in pages."""

import json
from typing import Any

from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.server import CloudServer, Reply, Request

PATH = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations"
#: A few of the many usages that are not about machines with accelerators.
OTHERS = {"availabilitySets": 2500, "virtualMachines": 25000, "standardDSv3Family": 100}


class AzureQuotaCloud(CloudServer):
    """`values` holds the limit of each name by location; a location without any is unknown to Azure."""

    def __init__(self, values: dict[str, dict[str, Any]], *, page_size: int = 5) -> None:
        super().__init__(self._answer)
        self.values, self.page_size = values, page_size

    def _answer(self, request: Request) -> Reply:
        location = request.path.removeprefix(f"{PATH}/").removesuffix("/usages")
        if location not in self.values:
            body = (
                b'{"error": {"code": "NoRegisteredProviderFound", "message": "No registered resource provider found"}}'
            )
            return Reply(status=400, body=body)
        rows = [
            {
                "unit": "Count",
                "currentValue": 0,
                "limit": limit,
                "name": {"value": name, "localizedValue": f"{name} vCPUs"},
            }
            for name, limit in (OTHERS | self.values[location]).items()
        ]
        start = int(request.parameter("$skip", "0"))
        end = start + self.page_size
        page: dict[str, Any] = {"value": rows[start:end]}
        if end < len(rows):
            page["nextLink"] = f"{self.url}{PATH}/{location}/usages?api-version=2024-07-01&$skip={end}"
        return Reply(body=json.dumps(page).encode())
