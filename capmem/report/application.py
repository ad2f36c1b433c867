"""The application: check the keys, write the page of each folder, say where it is."""

from __future__ import annotations

from typing import Any

from capmem import results
from capmem.capacity import Criterion
from capmem.report.write import write
from capmem.schema import coerce, require, unknown

HINTS: dict[str, Any] = {"folder": str | None, "criterion": str, "threshold": float, "rows": int}


def show(job: Any) -> bool:
    """Write the page of each configuration; all keys are checked before the first is written."""
    asked = [{key: coerce(config[key], hint, key) for key, hint in HINTS.items()} for config in job.configs]
    for config in asked:
        require(config["folder"] is not None, "folder", config["folder"], "the folder of results, folder=FOLDER")
        require(config["rows"] >= 1, "rows", config["rows"], "an integer of at least 1")
        if config["criterion"] not in results.METRICS:
            raise ValueError(unknown("criterion", config["criterion"], results.METRICS))
    for config in asked:
        print(write(config["folder"], Criterion(config["criterion"], config["threshold"]), config["rows"]))
    return True
