"""The keys of one head: spectrum with its dimensions, Gram matrix with tokens as ticks, recall of every token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.figures import _axes, _grid, _palette, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WAYS = ("as they are", "centred")


def place_of(table: pd.DataFrame) -> str:
    """Return "Layer 3, key head 5." of a table of one head."""
    return f"Layer {table['layer'].iloc[0]}, key head {table['head'].iloc[0]}."


def way_styles() -> dict[str, dict[str, Any]]:
    """Return colour and marker of keys as they are and centred."""
    return _palette.styles(list(WAYS))


def head_spectrum(spectrum: pd.DataFrame, dimensions: pd.DataFrame) -> _grid.Grid:
    """Draw the eigenvalue shares of one head's keys, with participation ratio and effective rank marked.

    Parameters
    ----------
    spectrum, dimensions : DataFrame
        The tables of :mod:`capmem.heads_analysis`, of one head.

    Returns
    -------
    Grid
        One panel; the table holds the shares.
    """
    figure, axes = _grid.plain_grid(width=5.4, height=3.9, ratios=(1,))
    ax, styles = axes[0, 0], way_styles()
    rows = dimensions[dimensions["choice"] == "all"].set_index("keys")
    dim = int(rows["key_dim"].iloc[0])
    handles = []
    for way, own in styles.items():
        part = spectrum[spectrum["keys"] == way]
        part = part[part["share"] > 1e-12]
        ax.plot(part["index"], part["share"], color=own["color"], marker=own["marker"], linewidth=0.9, markersize=3.2)
        for column, dash in (("participation_ratio", (0, (1, 1.2))), ("effective_rank", (0, (5, 2)))):
            ax.axvline(float(rows[column][way]), color=own["color"], linestyle=dash, linewidth=1.3)
        handles.append(_axes.line_handle(f"keys {way}", linewidth=0.9, markersize=4, **own))
    ax.plot([1, dim], [1 / dim, 1 / dim], color="0.4", linewidth=1, linestyle="-.")
    shares = spectrum["share"].to_numpy(dtype=float)
    _axes.power_axis(ax, "y", [shares.max(), max(float(np.quantile(shares, 0.02)), 1e-6)])
    ax.set_xticks([1, *range(dim // 4, dim + 1, max(dim // 4, 1))])
    _axes.finish(ax, "index of eigenvalue", "share of the keys' power")
    handles += [
        _axes.line_handle("participation ratio (PR)", color="0.3", linestyle=(0, (1, 1.2)), linewidth=1.3),
        _axes.line_handle("effective rank (erank)", color="0.3", linestyle=(0, (5, 2)), linewidth=1.3),
        _axes.line_handle("isotropic keys, $1/d$", color="0.4", linestyle="-.", linewidth=1),
    ]
    _grid.add_legend(figure, handles)
    tokens = int(rows["tokens"].iloc[0])
    told = [place_of(spectrum), f"{tokens} keys divided by their norms; $d$ = {dim}."]
    _grid.add_caption(figure, [*told, *(f"Keys {way}: {_sizes(rows, way)}." for way in styles)])
    return _grid.Grid(figure, axes, spectrum)


SHORT = {"effective_dim": "$1/\\overline{\\cos^2}$", "participation_ratio": "PR", "effective_rank": "erank"}


def _sizes(rows: pd.DataFrame, way: str) -> str:
    return ", ".join(f"{short} = {float(rows[name][way]):.1f}" for name, short in SHORT.items())


def head_gram(gram: pd.DataFrame) -> _grid.Grid:
    """Draw the cosines of the keys of some tokens of one head, tokens as ticks, as they are and centred.

    Parameters
    ----------
    gram : DataFrame
        The table of :mod:`capmem.heads_analysis`, of one head.

    Returns
    -------
    Grid
        Two panels; the table holds the cosines.
    """
    places, column_of = np.unique(gram["j"], return_inverse=True)
    row_of, count = np.searchsorted(places, gram["i"]), len(places)
    tokens = [str(t) for t in gram.drop_duplicates("j").sort_values("j")["token_j"]]
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=4.1, ratios=(1, 1))
    for ax, column, way in zip(axes[0], ("cosine", "cosine_centred"), WAYS, strict=True):
        image = np.full((count, count), np.nan)
        image[row_of, column_of] = image[column_of, row_of] = gram[column]
        edges = np.arange(count + 1) - 0.5
        mesh = ax.pcolormesh(edges, edges, image, vmin=-1, vmax=1, cmap="RdBu_r", rasterized=True)
        ax.set(aspect="equal", ylim=(count - 0.5, -0.5))
        ax.set_xticks(range(count), [plain(t) for t in tokens], rotation=90, fontsize=6.5)
        ax.set_yticks(range(count), [plain(t) for t in tokens] if ax is axes[0, 0] else [], fontsize=6.5)
        ax.tick_params(length=0)
        ax.set_title(f"keys {way}", fontsize=_grid.MEDIUM)
    bar = figure.colorbar(mesh, ax=axes, aspect=22, pad=0.01, shrink=0.72, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.set_label("cosine", fontsize=_grid.SMALL)
    bar.ax.tick_params(labelsize=_grid.SMALL)
    spread = f"{count} tokens, spread evenly over positions {places[0]} to {places[-1]}."
    told = f"{spread} Off the diagonal: what reading one token mixes in of another."
    _grid.add_caption(figure, [place_of(gram), told])
    return _grid.Grid(figure, axes, gram)


def head_tokens(tokens: pd.DataFrame) -> _grid.Grid:
    """Draw the recall error of every token of one head along the text, all tokens stored.

    Parameters
    ----------
    tokens : DataFrame
        The table of :mod:`capmem.heads_analysis`, of one head.

    Returns
    -------
    Grid
        Two panels, keys as they are and centred; the table holds the errors.
    """
    figure, axes = _axes.panels(2, 1, height=4.4)
    kinds: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
        "recalled": ("black", "o", lambda t: t["recalled"]),
        "an equal token is read": (_words.colours(3, False)[2], "s", lambda t: ~t["recalled"] & t["recalled_token"]),
        "another token is read": (_words.colours(3, False)[1], "x", lambda t: ~t["recalled_token"]),
    }
    for ax, way in zip(axes[:, 0], WAYS, strict=True):
        part = tokens[tokens["keys"] == way].sort_values("position")
        ax.vlines(part["position"], 0, part["error"], color="0.85", linewidth=0.7)
        for colour, marker, chosen in kinds.values():
            some = part[chosen(part)]
            ax.plot(some["position"], some["error"], marker, color=colour, markersize=3.2, linestyle="none")
        share = part["recalled"].mean()
        _axes.finish(ax, "", "recall error\n(fraction of $|v|^2$)", f"keys {way}: {share:.0%} recalled")
        _name_worst(ax, part)
        ax.margins(x=0.02)
    axes[0, 0].set_ylim(0, 1.3 * float(tokens["error"].max()))
    axes[-1, 0].set_xlabel("position in the text", fontsize=_grid.MEDIUM)
    handles = [
        _axes.line_handle(name, color=colour, marker=marker, linestyle="none", markersize=4)
        for name, (colour, marker, _) in kinds.items()
    ]
    _grid.add_legend(figure, handles)
    count = int(tokens["position"].max()) + 1
    told = f"All {count} tokens stored, Hebbian, keys divided by their norms, one gain for all."
    _grid.add_caption(figure, [place_of(tokens), told, "Named: the five worst tokens."])
    return _grid.Grid(figure, axes, tokens)


def _name_worst(ax: Axes, part: pd.DataFrame) -> None:
    """Write the five worst tokens beside their points; one close behind another stands above it."""
    worst, length = part.nlargest(5, "error").sort_values("position"), float(part["position"].max())
    before, lines = -np.inf, 0
    for token, place, error in zip(worst["token"], worst["position"], worst["error"], strict=True):
        lines = lines + 1 if place - before < length / 8 else 0
        before, left = place, place < 0.85 * length
        ax.annotate(plain(str(token)), (place, error), (2 if left else -2, 2 + 9 * lines), fontsize=6.5,
                    textcoords="offset points", ha="left" if left else "right")  # fmt: skip


def plain(token: str) -> str:
    """Return a token as text that Matplotlib draws as it is: marks of words as spaces, no formulas."""
    shown = token.replace("\u0120", "\u00b7").replace("\u2581", "\u00b7").replace("\u010a", "\\n")
    return shown.replace("$", "\\$")[:12]
