"""Stands for an interpreter with cobre-bridge: called with `-P -m cobre_bridge.cli convert KIND DECK CASE --json`.

What it does is said by the deck: its file `behave` holds a word, and `case` is what the conversion gives.
"""

import json
import os
import shutil
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    assert words[:4] == ["-P", "-m", "cobre_bridge.cli", "convert"], words
    _, _, _, _, kind, deck, case, flag, *options = words
    assert flag == "--json"
    behave = (Path(deck) / "behave").read_text().strip()
    if behave == "absent":
        print("/usr/bin/python3: No module named cobre_bridge", file=sys.stderr)
        return 1
    if behave == "garbage":
        print("Traceback (most recent call last):\n  …\nZeroDivisionError: division by zero", file=sys.stderr)
        return 1
    if behave == "not a report":
        print("[1, 2]")
        return 0
    if behave == "killed":
        os.abort()
    print("a remark of a library", file=sys.stderr)
    if behave == "refuses":
        found = {"severity": "error", "summary": "dger.dat has no year.", "notes": ["field: ano"]}
        print(json.dumps({"status": "error", "diagnostics": [found]}))
        return 1
    if kind == "newave":
        table = (Path(deck) / "SISTEMA.DAT").read_bytes().decode("latin-1")
        assert "   1    1  PCH\r\n" in table, "a converter needs the block index"
    shutil.copytree(Path(deck) / "case", case)
    manifest = {"command": f"convert {kind}", "source_dir": deck, "options": options}
    (Path(case) / "conversion_manifest.json").write_text(json.dumps(manifest))
    notes = [
        {"severity": "info", "summary": "Excluded 1 plant.", "table": {"columns": [], "rows": []}},
        {"severity": "warning", "summary": "The cutoff\nis unknown.", "remediation": "Look at REE.DAT."},
    ]
    print(json.dumps({"status": "ok", "diagnostics": notes}, indent=2))
    return 0


sys.exit(main(sys.argv[1:]))
