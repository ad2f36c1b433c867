"""A figure for dark pages: greys turned over, the colours of data kept, and lifted where they would not be seen."""

from __future__ import annotations

import re

PAPER, INK = 0x14, 0xE8  # what white and black become: the page's own --paper and --ink
LEAST_CONTRAST = 3.0  # of lines and markers to the page (WCAG 2.2, 1.4.11)
GREY = 8  # largest difference of channels that counts as grey
STYLE = re.compile(r'style="([^"]*)"')
COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
Colour = tuple[int, int, int]


def darkened(svg: bytes) -> bytes:
    """Return an SVG of matplotlib's with its colours for a dark page; images in it stay as they are."""
    text = svg.decode("utf-8")
    text = STYLE.sub(lambda style: f'style="{_style(style[1])}"', text)
    return text.replace("<svg ", f'<svg fill="{_told((INK, INK, INK))}" ', 1).encode("utf-8")  # text has no fill: black


def _style(style: str) -> str:
    lines = "stroke: #" in style or "opacity" in style  # else an area, whose colour a scale explains
    return COLOUR.sub(lambda found: f"{found[1]}: {_told(_colour(_read(found[2]), lines))}", style)


def _colour(colour: Colour, lift: bool) -> Colour:
    if max(colour) - min(colour) <= GREY:
        level = INK - round(colour[0] * (INK - PAPER) / 255)
        return (level, level, level)
    return lifted(colour) if lift else colour


def lifted(colour: Colour) -> Colour:
    """Return the colour mixed with as little white as gives it the least contrast to the page."""
    for share in range(0, 101, 4):
        mixed = (_mix(colour[0], share), _mix(colour[1], share), _mix(colour[2], share))
        if contrast(mixed, (PAPER, PAPER, PAPER)) >= LEAST_CONTRAST:
            return mixed
    return (INK, INK, INK)


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2), from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    shares = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mix(channel: int, percent: int) -> int:
    return round(channel + (255 - channel) * percent / 100)


def _read(text: str) -> Colour:
    return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))


def _told(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
