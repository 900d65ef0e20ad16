# SPDX-License-Identifier: Apache-2.0
"""What commands that write results need for the HTML report: the option of a bench, and how the page is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crosslane.errors import BadInput
from crosslane.outputs import Outputs

if TYPE_CHECKING:
    from crosslane.formats import Gated
    from crosslane.results import RunResult

__all__ = ["page_options"]

F = TypeVar("F", bound=Callable[..., Any])


def page_options(function: F) -> F:
    """Give ``outputs`` of a command the HTML report with findings of its ``folder``; goes below ``output_options``."""

    def wrapped(**values: Any) -> Any:
        bench = values.pop("bench_file")
        values["outputs"] = _with_page(values["outputs"], values["folder"], bench)
        return function(**values)

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    wrapped.__dict__.update(function.__dict__)
    made: Any = click.option(
        "--bench", "bench_file", type=click.Path(path_type=Path), help="Plot this file of `bench --json` in --html."
    )(wrapped)
    result: F = made
    return result


def _with_page(outputs: Outputs, folder: Path, bench_file: Path | None) -> Outputs:
    """The outputs with what makes the page; raises BadInput for a bench that is none, before anything runs."""
    if "html" not in outputs.files:
        if bench_file is not None:
            raise BadInput("--bench goes with --html: add it, or leave --bench out")
        return outputs
    from crosslane.html.benches import read_bench  # noqa: PLC0415 - numpy and jinja2 are for those that need them
    from crosslane.html.page import html_text  # noqa: PLC0415

    bench = read_bench(bench_file) if bench_file is not None else None

    def page(result: RunResult, gated: Gated | None) -> str:
        return html_text(result, gated, findings=folder, bench=bench)

    return replace(outputs, page=page, inputs=(bench_file,) if bench_file is not None else ())
