"""Count many modules in one process, under the interpreter that has torch: importing it for each would be slow.

`python count_many.py COUNTER_FOLDER` reads requests from standard input and writes one result per request.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main() -> None:
    entry = Path(sys.argv[1]) / "__main__.py"
    spec = importlib.util.spec_from_file_location("counter_entry", entry)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.argv[0] = str(entry)
    module.load_package()
    results = [module.run(request) for request in json.load(sys.stdin)]
    print("\n" + json.dumps(results))


main()
