"""Train and simulate by Cobre, and print its cuts as JSON: `python cobre_states_child.py CASE OUTPUT`.

This file is run by its path and imports nothing of this package: Cobre lives in an environment of its own.
"""

import json
import sys


def main(case: str, output: str) -> None:
    import cobre.results  # type: ignore[import-not-found]
    import cobre.run  # type: ignore[import-not-found]

    bounds: list[float] = []
    cobre.run.run(case, output, threads=1, on_iteration=lambda event: bounds.append(event["lower_bound"]))
    pools = cobre.results.load_policy(output)["stage_cuts"]
    stages = {
        pool["stage_id"]: {
            "states": [[e["entity_type"], e["entity_id"], e["subindex"]] for e in pool["entity_manifest"]],
            "dates": [e["reference_date"] for e in pool["entity_manifest"]],
            "iteration": [cut["iteration"] for cut in pool["cuts"]],
            "intercept": [cut["intercept"] for cut in pool["cuts"]],
            "slope": [list(cut["coefficients"]) for cut in pool["cuts"]],
        }
        for pool in pools
    }
    with open(f"{output}/cuts.json", "w", encoding="ascii") as file:
        json.dump(stages, file)
    print(json.dumps(bounds))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
