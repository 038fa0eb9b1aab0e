"""A local Service Quotas of AWS: the quotas of EC2 by region, in pages."""

import json
from typing import Any

from tests.clouds.aws import AMZ_JSON, region_of
from tests.clouds.server import CloudServer, Reply, Request

TARGET = "ServiceQuotasV20190624.ListServiceQuotas"
#: A few of the many quotas of EC2 that are not about accelerators.
OTHERS = {"L-1216C47A": 640.0, "L-34B43A08": 640.0, "L-0263D0A3": 5.0}


class AwsQuotaCloud(CloudServer):
    """`values` holds what the account has by (region, code); a region that has none is answered with the others only."""

    def __init__(self, values: dict[tuple[str, str], Any], *, page_size: int = 2) -> None:
        super().__init__(self._answer)
        self.values, self.page_size = values, page_size

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("x-amz-target") != TARGET:
            return Reply(status=400, body=b'{"__type": "UnknownOperationException"}', content_type=AMZ_JSON)
        asked, region = json.loads(request.body), region_of(request)
        known = OTHERS | {code: value for (place, code), value in self.values.items() if place == region}
        rows = [
            {"ServiceCode": asked["ServiceCode"], "QuotaCode": code, "Value": known[code]} for code in sorted(known)
        ]
        start = int(asked.get("NextToken", "0"))
        end = start + self.page_size
        page: dict[str, Any] = {"Quotas": rows[start:end]} | ({"NextToken": str(end)} if end < len(rows) else {})
        return Reply(body=json.dumps(page).encode(), content_type=AMZ_JSON)
