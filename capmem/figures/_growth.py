"""How a memory fills: effective rank against pairs, and the spectrum of S as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures._ages import handles

if TYPE_CHECKING:
    import pandas as pd


def effective_rank(frame: pd.DataFrame) -> _grid.Grid:
    """Draw effective rank and participation ratio of S against N, a line for each law of keys.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.memory_growth`; rows of part "state" count.

    Returns
    -------
    Grid
        Two panels; the table holds means over trials, with intervals.
    """
    state = frame[frame["part"] == "state"]
    names = list(dict.fromkeys(state["keys"]))
    values = ["effective_rank", "participation_ratio"]
    by = ["keys", "num_pairs"]
    means = [results.aggregate(state[[*by, "trial", v, *_theory(state, v)]], by, [v]) for v in values]
    table = means[0].merge(means[1].drop(columns="trials"), on=by)
    styles = _palette.styles(names)
    for name in names:
        styles[name]["markerfacecolor"] = "none" if "centred" in name else None  # what lies below it stays in sight
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.5, ratios=(1, 1))
    most = min(int(state["key_dim"].iloc[0]), int(state["value_dim"].iloc[0]))
    counts = sorted(set(table["num_pairs"]))
    for ax, value in zip(axes[0], values, strict=True):
        _axes.lines(ax, table, "num_pairs", value, "keys", styles)
        ax.plot(counts, [min(n, most) for n in counts], ":", color="0.4", linewidth=1.2)
        _axes.power_axis(ax, "x", counts)
        _axes.power_axis(ax, "y", [1, most], base=2)
    _axes.finish(axes[0, 0], _words.axis_name("num_pairs"), "effective rank of $S$\n(exp of entropy)")
    _axes.finish(axes[0, 1], _words.axis_name("num_pairs"), "participation ratio of $S$\n(directions)")
    bound = _axes.line_handle("rank, at most", color="0.4", linestyle=":")
    _grid.add_legend(figure, [*handles(names, styles), bound, *_axes.measured_and_theory()])
    told = f"Points: {_words.repeats(table['trials'])}; band: 95% bootstrap interval of the mean."
    shape = f"${state['key_dim'].iloc[0]} \\times {state['value_dim'].iloc[0]}$"
    _grid.add_caption(figure, [told, f"Hebbian, identity map, $S$ {shape}. Dashed: closed form for unit keys."])
    return _grid.Grid(figure, axes, table)


def _theory(frame: pd.DataFrame, value: str) -> list[str]:
    return [c for c in (f"theory_{value}",) if c in frame]


def spectrum(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the singular values of S in order, a panel for each law of keys, a line for each N.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.memory_growth`; rows of part "singular" count.

    Returns
    -------
    Grid
        A panel a law; the table holds the means drawn.
    """
    table = _axes.part(frame, "singular")
    names, counts = list(dict.fromkeys(table["keys"])), sorted(set(table["num_pairs"]))
    styles = _palette.styles(counts, ordered=True)
    figure, axes = _grid.new_grid(1, len(names), panel_height=2.2)
    top = table["singular_value"].max()
    for ax, name in zip(axes[0], names, strict=True):
        for n, part in table[table["keys"] == name].groupby("num_pairs"):
            part = part[part["index"] <= n]  # what is beyond the rank is rounding
            ax.plot(part["index"], part["singular_value"], marker=".", markersize=2.5, linewidth=0.9,
                    color=styles[n]["color"])  # fmt: skip
        _axes.power_axis(ax, "y", [top / 2**7, top], base=2)
        ax.set_ylim(top / 2**7, top * 1.2)
        _axes.finish(ax, "index", "")
    axes[0, 0].set_ylabel("singular value of $S$\n(units of $|v|$)", fontsize=_grid.MEDIUM)
    _grid.name_panels(axes, names, None)
    lead = [_axes.line_handle("stored pairs $N$:", linestyle="none")]
    _grid.add_legend(figure, lead + [_axes.line_handle(f"{n:g}", color=styles[n]["color"]) for n in counts])
    _grid.add_caption(figure, ["Mean over trials of each singular value. Hebbian, identity map."])
    return _grid.Grid(figure, axes, table)
