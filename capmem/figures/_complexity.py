"""What attention costs against N: flops as counted, time and memory as measured, with the crossing points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capmem.figures import _axes, _grid, _palette

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ROWS = (
    (False, {"softmax": "softmax", "left": "$(QK^T)\\,V$", "right": "$Q\\,(K^TV)$"}, "crossing"),
    (
        True,
        {"quadratic": "causal, masked product", "recurrent": "causal, recurrent", "chunked": "causal, chunked"},
        "causal_crossing",
    ),
)
_COLUMNS = {
    "flops": "flops (counted)",
    "seconds": "time (s)",
    "peak_bytes": "peak memory (bytes)",
}


def complexity(frame: pd.DataFrame) -> _grid.Grid:
    """Draw flops, time and peak memory against N: a row without a mask, a row with the causal one.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.complexity`.

    Returns
    -------
    Grid
        Six panels; the table is `frame`.
    """
    names = [form for _, forms, _ in _ROWS for form in forms]
    styles = _palette.styles(names)
    styles["left"]["markerfacecolor"] = "none"  # it has the flops of softmax, which stay in sight
    figure, axes = _axes.panels(2, len(_COLUMNS), height=5.0)
    for row, (causal, forms, crossing) in zip(axes, _ROWS, strict=True):
        part = frame[frame["causal"] == causal]
        for ax, column in zip(row, _COLUMNS, strict=True):
            _axes.lines(ax, part, "num_pairs", column, "form", {form: styles[form] for form in forms})
            if column != "peak_bytes":
                _mark(ax, float(part[crossing].iloc[0]))
    for ax, (column, name) in zip(axes[0], _COLUMNS.items(), strict=True):
        _axes.power_axis(ax, "y", frame[column])
        ax.set_title(name, fontsize=_grid.MEDIUM)
    for ax in axes.flat:
        _axes.finish(ax, "", "")
    for ax in axes[1]:
        _axes.power_axis(ax, "x", frame["num_pairs"], most_ticks=5)
        ax.set_xlabel("pairs and queries $N$", fontsize=_grid.MEDIUM)
    labels = {form: label for _, forms, _ in _ROWS for form, label in forms.items()}
    handles = [_axes.line_handle(labels[f], **{**_axes.MEASURED, **styles[f], "markersize": 4}) for f in names]
    crossing = _axes.line_handle("crossing point, by flops", color="0.3", **_axes.THEORY)
    handles.insert(len(_ROWS[0][1]), crossing)  # ends the legend's first line
    _grid.add_legend(figure, handles)
    first = frame.iloc[0]
    told = f"One head, $d$ = {first['key_dim']}, $v$ = {first['value_dim']}, chunks of {first['chunk_size']}."
    _grid.add_caption(figure, [told, "Time: best of several repetitions, one core. Memory: most allocated at a time."])
    return _grid.Grid(figure, axes, frame)


def _mark(ax: Axes, crossing: float) -> None:
    """Mark the N where two counts are equal: above with the masked or left form, below with the other."""
    ax.axvline(crossing, color="0.3", **{**_axes.THEORY, "linewidth": 1.1})
    ax.annotate(f"{crossing:.0f}", (crossing, 0.97), (3, 0), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", fontsize=_grid.SMALL, color="0.3")  # fmt: skip
