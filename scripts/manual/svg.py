"""A page of SVG: rectangles, lines and texts on white. No library is needed for that."""

from __future__ import annotations

from xml.sax.saxutils import escape

BLUE, PALE, ORANGE, GREY, INK = "#1f5fa8", "#cfe0f2", "#e08a30", "#c9c9c9", "#222222"


class Drawing:
    """Collects shapes, and gives the text of a file."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, fill: str, *, round_: int = 0) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
            f' rx="{round_}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = GREY) -> None:
        self._parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{stroke}" fill="none"/>')

    def text(
        self, x: float, y: float, text: str, *, size: int = 12, fill: str = INK, anchor: str = "start"
    ) -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def add(self, markup: str) -> None:
        self._parts.append(markup)

    def markup(self) -> str:
        """Return the file. `viewBox` lets a page scale the picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
            f' width="{self.width}" height="{self.height}" font-family="sans-serif" role="img">'
            f"<title>{escape(self.title)}</title>"
            '<rect width="100%" height="100%" fill="white"/>' + "\n".join(self._parts) + "</svg>\n"
        )
