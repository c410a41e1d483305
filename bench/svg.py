"""Line charts as SVG, written by hand: a few panels side by side, legible on light and dark pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDTH, HEIGHT = 380, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 96


@dataclass(frozen=True)
class Panel:
    """One chart: named places on the x axis, one line for each series, y from zero."""

    title: str
    unit: str
    places: Sequence[str]
    series: Mapping[str, Sequence[float]]


def draw(panels: Sequence[Panel]) -> str:
    """Write the panels side by side as one SVG document."""
    width = WIDTH * len(panels)
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
    font = 'font-family="system-ui, sans-serif" font-size="11"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>',
        f"<title>{escape('; '.join(panel.title for panel in panels))}</title>",
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({number * WIDTH} 0)">')
        parts += _panel(panel)
        parts.append("</g>")
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _panel(panel: Panel) -> list[str]:
    top = nice_ceiling(max((value for line in panel.series.values() for value in line), default=1.0))
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold" fill="#222">{escape(panel.title)}</text>']
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        label = f"{value:,.10g}{' ' + panel.unit if step == 4 else ''}"
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{escape(label)}</text>'
        )
    for place, name in enumerate(panel.places):
        x = _x(place, len(panel.places))
        y = HEIGHT - BOTTOM + 16
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle" fill="#444">{escape(name)}</text>')
    for number, (name, values) in enumerate(panel.series.items()):
        parts += _line(number, name, values, top, len(panel.places))
    return parts


def _line(number: int, name: str, values: Sequence[float], top: float, places: int) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    points = [(_x(place, places), _y(value, top)) for place, value in enumerate(values)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    x, y = LEFT + (number % 2) * 160, HEIGHT - BOTTOM + 36 + (number // 2) * 18
    legend = [
        f'<rect x="{x}" y="{y - 8}" width="14" height="4" fill="{colour}"/>',
        f'<text x="{x + 20}" y="{y - 2}" fill="#222">{escape(name)}</text>',
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, *legend]


def _x(place: int, places: int) -> float:
    inner = WIDTH - LEFT - RIGHT - 40
    return LEFT + 20 + (inner * place / (places - 1) if places > 1 else inner / 2)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def nice_ceiling(value: float) -> float:
    """Return the next round number from which the axis can be cut into four."""
    unit = 1e-6
    while unit * 10 < value:
        unit *= 10
    return next((unit * step for step in (1, 2, 4, 6, 8, 10) if unit * step >= value), unit * 10)
