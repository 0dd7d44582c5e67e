"""mcphost's colour themes, and the contrast that every theme must have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

TEXT_CONTRAST: Final = 4.5
EDGE_CONTRAST: Final = 3.0
"""WCAG 2.2 AA asks for these ratios: 1.4.3 for text, 1.4.11 for borders and what shows the focus."""

GROUNDS: Final = ("background", "surface", "panel", "block-cursor-background", "block-cursor-blurred-background")
"""Tokens of backgrounds."""

TEXTS: Final = (
    "foreground",
    "foreground-muted",
    "foreground-disabled",
    "text-muted",
    "text-disabled",
    "text-primary",
    "text-secondary",
    "text-accent",
    "text-success",
    "text-warning",
    "text-error",
    "footer-foreground",
    "footer-key-foreground",
)
"""Tokens of text on any of these backgrounds."""

EDGES: Final = ("border", "border-blurred", "scrollbar", "scrollbar-hover", "scrollbar-active")
"""Tokens of lines and bars, on any background but the cursor's."""

HUES: Final = ("primary", "secondary", "accent", "success", "warning", "error")

PAIRS: Final = (
    ("block-cursor-foreground", "block-cursor-background"),
    ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
    ("input-cursor-foreground", "input-cursor-background"),
)
"""Text tokens that have one ground of their own."""


def _theme(name: str, *, dark: bool, colors: Mapping[str, str]) -> Theme:
    """A theme whose derived tokens are not left to Textual, which takes its blue for them."""
    background, surface, panel = colors["background"], colors["surface"], colors["panel"]
    foreground, muted, accent, edge = colors["foreground"], colors["muted"], colors["accent"], colors["edge"]
    return Theme(
        name,
        primary=colors["primary"],
        secondary=colors["secondary"],
        accent=accent,
        success=colors["success"],
        warning=colors["warning"],
        error=colors["error"],
        foreground=foreground,
        background=background,
        surface=surface,
        panel=panel,
        boost=panel,
        dark=dark,
        variables={
            **{f"text-{hue}": colors[hue] for hue in HUES},
            "text-muted": muted,
            "text-disabled": muted,
            "foreground-muted": muted,
            "foreground-disabled": muted,
            "border": accent,
            "border-blurred": edge,
            "block-cursor-background": colors["cursor"],
            "block-cursor-foreground": foreground,
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": panel,
            "block-cursor-blurred-foreground": foreground,
            "block-hover-background": panel,
            "footer-background": surface,
            "footer-foreground": muted,
            "footer-key-foreground": accent,
            "footer-description-foreground": muted,
            "input-cursor-background": foreground,
            "input-cursor-foreground": background,
            "input-selection-background": colors["cursor"],
            "screen-selection-background": colors["cursor"],
            "scrollbar": edge,
            "scrollbar-hover": muted,
            "scrollbar-active": accent,
            "scrollbar-background": surface,
            "scrollbar-background-hover": surface,
            "scrollbar-background-active": surface,
            "scrollbar-corner-color": surface,
            "link-background-hover": colors["cursor"],
            "link-color-hover": foreground,
        },
    )


DARK: Final = _theme(
    "mcphost-dark",
    dark=True,
    colors={
        "background": "#10151c",
        "surface": "#151c25",
        "panel": "#1e2733",
        "foreground": "#dce2ea",
        "muted": "#9aa7b7",
        "edge": "#67768a",
        "cursor": "#3b3120",
        "accent": "#ffb547",
        "primary": "#82bbff",
        "secondary": "#c4a7ff",
        "success": "#83d391",
        "warning": "#f2d45c",
        "error": "#ff8a80",
    },
)

LIGHT: Final = _theme(
    "mcphost-light",
    dark=False,
    colors={
        "background": "#fbfaf7",
        "surface": "#f4f1ea",
        "panel": "#e9e4d9",
        "foreground": "#23272e",
        "muted": "#545b66",
        "edge": "#7d7f83",
        "cursor": "#f7dfb0",
        "accent": "#8a4b00",
        "primary": "#174f8c",
        "secondary": "#5b3aa0",
        "success": "#1d6131",
        "warning": "#6e5200",
        "error": "#a3201a",
    },
)

MUTED: Final = "ansi_bright_black"
"""The colour of muted text in sixteen colours; `DimInSixteen` draws it."""

SIXTEEN: Final = Theme(
    "mcphost-16",
    primary="ansi_cyan",
    secondary="ansi_magenta",
    accent="ansi_yellow",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    background="ansi_default",
    foreground="ansi_default",
    ansi=True,
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border": "ansi_yellow",
        "border-blurred": MUTED,
        "text-muted": MUTED,
        "text-disabled": "ansi_default",
        "foreground-muted": MUTED,
        "warning-muted": "ansi_default",
        "error-muted": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-text-style": "bold reverse",
        "block-cursor-blurred-background": "ansi_default",
        "block-cursor-blurred-foreground": "ansi_default",
        "block-cursor-blurred-text-style": "underline",
        "footer-key-foreground": "ansi_yellow",
        "input-selection-background": "ansi_yellow",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_yellow",
        "screen-selection-foreground": "ansi_black",
        "scrollbar": MUTED,
        "scrollbar-hover": "ansi_yellow",
        "scrollbar-active": "ansi_yellow",
        "link-color": "ansi_cyan",
    },
)
"""The terminal's own sixteen colours: red is kept for danger, so what amber is elsewhere is yellow here."""


class DimInSixteen(LineFilter):
    """Draws the muted colour of `SIXTEEN` as the terminal's own text, dim.

    The grey of sixteen colours is the background itself in some palettes.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, style and _dim(style), control) for text, style, control in segments]


@lru_cache(maxsize=1024)
def _dim(style: Style) -> Style:
    muted = Color.parse(MUTED).rich_color
    if style.bgcolor == muted:  # a part of a scrollbar
        return style + Style(color="default", bgcolor="default", dim=True, reverse=True)
    return style + Style(color="default", dim=True) if style.color == muted else style


THEMES: Final = (DARK, LIGHT, SIXTEEN)


def theme_for(*, light: bool, sixteen: bool) -> Theme:
    """Mcphost's theme for a terminal with a light background, or with sixteen colours."""
    return SIXTEEN if sixteen else LIGHT if light else DARK


def with_contrast(theme: Theme, variables: Mapping[str, str]) -> dict[str, str]:
    """A theme's variables, each text and edge moved towards black or white until it stands out from its grounds.

    What has enough contrast stays as it is, and so do the terminal's own colours, whose values are unknown here.
    """
    if theme.ansi:
        return dict(variables)
    ours = dict(variables)
    if theme not in THEMES:  # Textual's cursor is as bright as its text, and rows have marks of several colours on it
        cursor = Color.parse(ours["surface"]).blend(Color.parse(ours["accent"]), 0.2)
        ours |= {"block-cursor-background": cursor.hex, "block-cursor-foreground": ours["foreground"]}
        ours |= {"block-cursor-blurred-background": ours["panel"], "text-muted": ours["foreground-muted"]}
        ours |= {"text-disabled": ours["foreground-muted"], "foreground-disabled": ours["foreground-muted"]}
        ours["border"] = ours["accent"]
    for wanted, names, grounds in (
        (TEXT_CONTRAST, TEXTS, GROUNDS),
        (EDGE_CONTRAST, EDGES, GROUNDS[:3]),
        *((TEXT_CONTRAST, (text,), (ground,)) for text, ground in PAIRS),
    ):
        behind = [color for name in grounds if (color := _opaque(ours, ours[name])) is not None]
        for name in names:
            color = _opaque(ours, ours[name])
            if color is not None and contrast(color, behind) < wanted:
                ours[name] = _moved(color, behind, wanted).hex
    return ours


def contrast(color: Color, grounds: Iterable[Color]) -> float:
    """The lowest contrast ratio that a colour has with the grounds, from 1 to 21, as WCAG 2.2 defines it."""
    own = _luminance(color)
    ratios = ((max(own, other) + 0.05) / (min(own, other) + 0.05) for other in map(_luminance, grounds))
    return min(ratios, default=21.0)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _opaque(variables: Mapping[str, str], value: str) -> Color | None:
    """The colour as it is seen over the background; None for one that the terminal or the ground decides."""
    if value.startswith("auto"):
        return None
    color = Color.parse(value)
    if color.ansi is not None:
        return None
    return Color.parse(variables["background"]).blend(color.with_alpha(1.0), color.a) if color.a < 1 else color


def _moved(color: Color, grounds: list[Color], wanted: float) -> Color:
    return next(
        (each for each in _towards(color, grounds) if contrast(each, grounds) >= wanted), grounds[0].get_contrast_text()
    )


def _towards(color: Color, grounds: list[Color]) -> Iterator[Color]:
    """Mixtures with white or black, whichever the grounds are further from, the least change first."""
    white, black = Color(255, 255, 255), Color(0, 0, 0)
    goal = white if contrast(white, grounds) >= contrast(black, grounds) else black
    return (color.blend(goal, step / 20) for step in range(1, 21))
