"""Write the JSON Schemas of a run's files beside the page about them: `python docs/run_schemas.py`."""

import json
from pathlib import Path

from pycobre.app.results.event_log import event_schema
from pycobre.app.results.status import status_schema

REFERENCE = Path(__file__).parent / "reference"

if __name__ == "__main__":
    for name, schema in (("status", status_schema()), ("events", event_schema())):
        (REFERENCE / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n")
