"""What stands where on an invoice: blocks from the letterhead down, each one moving the cursor.

The labelling rule is one region a table cell and one region a line of text, however close they stand: a label
and its value ("Date", "2024-03-01") are two cells, a letter-spaced title is one line. Logos, rules, bar codes
and signatures are no text.
"""

from __future__ import annotations

import numpy as np

from pipelines.synthesis.canvas import Align, Color, TextStyle
from pipelines.synthesis.invoice_graphics import draw_barcode, draw_logo, draw_signature
from pipelines.synthesis.invoice_words import InvoiceContent, Items, Language, Pair, write_content, write_items
from pipelines.synthesis.sheet import Sheet

ALIGNMENTS: tuple[Align, ...] = ("center", "left", "right", "right", "right")
MAX_ROWS = 30


def draw_letterhead(sheet: Sheet, content: InvoiceContent, rng: np.random.Generator) -> int:
    """Logo, seller and title; the y below them."""
    theme, top = sheet.theme, sheet.theme.margin_px
    logo_px = round(theme.body_px * rng.uniform(2.6, 3.6))
    x: float
    align: Align = "left"
    if theme.letterhead == "centered":
        x, align, logo_left = (sheet.left + sheet.right) / 2, "center", sheet.left
    elif theme.letterhead == "logo_right":
        x, logo_left = sheet.left, sheet.right - logo_px
    else:
        x, logo_left = sheet.left + logo_px + theme.body_px, sheet.left
    draw_logo(sheet.canvas.image, logo_left, top, logo_px, theme.accent, rng)
    room = sheet.right - sheet.left - 2 * (logo_px + theme.body_px)
    name, *address = content.seller
    sheet.write(name, x, top, theme.style(1.35, bold=True), align, room)
    y = top + round(1.8 * theme.body_px)
    for line in address:
        sheet.write(line, x, y, theme.style(0.86), align, room)
        y += round(1.2 * theme.body_px)
    return max(y, top + logo_px) + round(theme.body_px * 0.6)


def draw_title(sheet: Sheet, content: InvoiceContent, y: int, rng: np.random.Generator) -> int:
    """The word that says what the sheet is, plain, ruled or white on a band; the y below it."""
    theme = sheet.theme
    is_band = rng.random() < 0.3
    style = theme.style(rng.uniform(1.6, 2.0), bold=True, color=(250, 250, 250) if is_band else theme.accent)
    style = TextStyle(style.font, style.size_px, style.color, theme.title_tracking_px)
    height = round(style.size_px * 1.3)
    if is_band:
        sheet.fill(sheet.left, y, sheet.right, y + height, theme.accent)
    align: Align = ("left", "center", "right")[rng.integers(3)]
    inset = theme.body_px * 0.6 if is_band else 0
    x = {"left": sheet.left + inset, "center": (sheet.left + sheet.right) / 2, "right": sheet.right - inset}[align]
    sheet.write(content.title, x, y + 0.12 * style.size_px, style, align, sheet.right - sheet.left - 2 * inset)
    if not is_band and rng.random() < 0.4:
        sheet.rule(y + height, sheet.left, sheet.right, theme.rule_px, theme.accent)
    return y + height + round(theme.body_px * 0.7)


def draw_parties(sheet: Sheet, content: InvoiceContent, y: int, rng: np.random.Generator) -> int:
    """The buyer at the left, label and value cells at the right; the y below both."""
    theme, middle = sheet.theme, (sheet.left + sheet.right) / 2
    label, *lines = content.buyer
    sheet.write(label, sheet.left, y, theme.style(0.8, color=theme.accent), width=middle - sheet.left)
    buyer_y = y + theme.line_px
    for line in lines:
        sheet.write(line, sheet.left, buyer_y, theme.style(), width=middle - sheet.left - theme.body_px)
        buyer_y += theme.line_px
    meta_y = draw_pairs(sheet, content.meta, y, (middle, sheet.right), rng)
    return max(buyer_y, meta_y) + round(theme.body_px * 0.6)


def draw_pairs(
    sheet: Sheet, pairs: tuple[Pair, ...], y: int, span: tuple[float, float], rng: np.random.Generator
) -> int:
    """Label cells with their values: right-aligned at the span's end, or close behind the labels."""
    theme, style = sheet.theme, sheet.theme.style()
    label_width = max(sheet.canvas.width_px(label, style) for label, _ in pairs)
    is_close = rng.random() < 0.6
    x = span[0] + label_width + theme.body_px * rng.uniform(0.45, 1.0) if is_close else span[1]
    for label, value in pairs:
        sheet.write(label, span[0], y, style)
        room = span[1] - x if is_close else span[1] - span[0] - label_width - 0.4 * theme.body_px
        sheet.write(value, x, y, theme.style(bold=not is_close), "left" if is_close else "right", room)
        y += theme.line_px
    return y


def column_spans(sheet: Sheet, items: Items) -> list[tuple[float, float]]:
    """Cell limits (left, right): each column as wide as its widest cell needs, the description takes the rest."""
    style, pad = sheet.theme.style(), sheet.theme.body_px * 0.28
    cells = [items.columns, *items.rows]
    bold = sheet.theme.style(0.92, bold=True)
    widths = [
        max(sheet.canvas.width_px(row[c], bold if row is items.columns else style) for row in cells) + 2 * pad
        for c in range(len(items.columns))
    ]
    widths[1] = sheet.right - sheet.left - sum(widths) + widths[1]
    edges = np.cumsum([sheet.left, *widths])
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def draw_table(sheet: Sheet, items: Items, y: int, row_px: int) -> int:
    """Head and item rows; the y below the last."""
    theme, spans = sheet.theme, column_spans(sheet, items)
    head_color = theme.accent if theme.has_dark_header else (225, 225, 225)
    if theme.has_dark_header or theme.table == "zebra":
        sheet.fill(sheet.left, y, sheet.right, y + row_px, head_color)
    head = theme.style(0.92, bold=True, color=(250, 250, 250) if theme.has_dark_header else None)
    _draw_row(sheet, items.columns, spans, y, row_px, head)
    top = y
    for index, row in enumerate(items.rows):
        y += row_px
        if theme.table == "zebra" and index % 2:
            sheet.fill(sheet.left, y, sheet.right, y + row_px, (238, 238, 238))
        if theme.table in ("ruled", "grid"):
            sheet.rule(y, sheet.left, sheet.right, theme.rule_px)
        _draw_row(sheet, row, spans, y, row_px, theme.style())
    y += row_px
    if theme.table != "plain":
        sheet.rule(y, sheet.left, sheet.right, theme.rule_px)
    if theme.table == "grid":
        for x in (*(left for left, _ in spans), spans[-1][1] - theme.rule_px):
            sheet.fill(x, top, x + theme.rule_px, y, theme.ink)
        sheet.rule(top, sheet.left, sheet.right, theme.rule_px)
    return y + round(theme.body_px * 0.4)


def _draw_row(
    sheet: Sheet,
    cells: tuple[str, ...],
    spans: list[tuple[float, float]],
    y: int,
    row_px: int,
    style: TextStyle,
) -> None:
    pad = sheet.theme.body_px * 0.28
    top = y + (row_px - style.size_px) / 2
    for text, (left, right), align in zip(cells, spans, ALIGNMENTS, strict=True):
        x = {"left": left + pad, "center": (left + right) / 2, "right": right - pad}[align]
        sheet.write(text, x, top, style, align, right - left - 2 * pad)


def draw_totals(sheet: Sheet, items: Items, y: int) -> int:
    """Sums at the right, the last one larger under a rule; the y below."""
    theme = sheet.theme
    left = sheet.right - (sheet.right - sheet.left) * 0.52
    for label, value in items.totals:
        is_last = (label, value) == items.totals[-1]
        style = theme.style(1.2 if is_last else 1.0, bold=is_last)
        if is_last:
            sheet.rule(y, left, sheet.right, 2 * theme.rule_px)
            y += round(theme.body_px * 0.35)
        value_px = sheet.canvas.width_px(value, style)
        sheet.write(label, left, y, style, width=sheet.right - left - value_px - theme.body_px * 0.5)
        sheet.write(value, sheet.right, y, style, "right")
        y += round(style.size_px * 1.35)
    return y


def draw_foot(sheet: Sheet, content: InvoiceContent, rng: np.random.Generator) -> None:
    """Small print in one or two columns at the very bottom; lifts the sheet's `bottom` above it."""
    gray = sheet.theme.ink[0] + 40
    style = sheet.theme.style(rng.uniform(0.68, 0.8), color=(gray, gray, gray))
    line_px = round(style.size_px * 1.3)
    half = (sheet.right - sheet.left) / 2 - sheet.theme.body_px * 0.5
    fits_twice = all(sheet.canvas.width_px(note, style) <= half for note in content.notes)
    num_columns = 2 if fits_twice and rng.random() < 0.6 else 1
    num_lines = -(-len(content.notes) // num_columns)
    width = (sheet.right - sheet.left) / num_columns
    sheet.bottom -= num_lines * line_px
    for index, note in enumerate(content.notes):
        column, line = divmod(index, num_lines)
        x = sheet.left + column * width
        sheet.write(note, x, sheet.bottom + line * line_px, style, width=width - sheet.theme.body_px * 0.5)
    sheet.rule(sheet.bottom - 2 - sheet.theme.rule_px, sheet.left, sheet.right, sheet.theme.rule_px)
    sheet.bottom -= round(sheet.theme.body_px * 0.6)


def draw_stamp(sheet: Sheet, content: InvoiceContent, y: int, rng: np.random.Generator) -> None:
    """A turned stamp in the free space left of the sums."""
    theme = sheet.theme
    color: Color = ((60, 60, 200), (170, 80, 40), (80, 130, 60))[rng.integers(3)]
    style = TextStyle(theme.family.bold, round(theme.body_px * rng.uniform(1.3, 1.7)), color, theme.body_px // 6)
    center = (sheet.left + (sheet.right - sheet.left) * 0.22, y + theme.body_px * 2.2)
    sheet.canvas.turned_text(content.stamp, center, style, rng.uniform(-14, 14), frame_px=max(1, theme.body_px // 8))


def draw_invoice_page(sheet: Sheet, words: Language, rng: np.random.Generator) -> None:
    """Everything, foot first, then from the top; the table takes as many rows as fit between."""
    theme, content = sheet.theme, write_content(rng, words)
    draw_foot(sheet, content, rng)
    y = draw_letterhead(sheet, content, rng)
    y = draw_title(sheet, content, y, rng)
    y = draw_parties(sheet, content, y, rng)
    row_px = round(theme.line_px * rng.uniform(1.0, 1.25))
    totals_px = round(theme.body_px * 5.4)
    max_rows = min(int((sheet.bottom - y - totals_px) // row_px) - 1, MAX_ROWS)
    if max_rows >= 1:
        items = write_items(rng, words, max_rows - int(rng.integers(0, max_rows // 2 + 1)))
        y = draw_table(sheet, items, y, row_px)
        if rng.random() < 0.35:
            draw_stamp(sheet, content, y, rng)
        elif rng.random() < 0.4:
            draw_signature(sheet.canvas.image, (sheet.left, y + theme.body_px), theme.body_px * 8, rng)
        y = draw_totals(sheet, items, y)
    if sheet.bottom - y > theme.body_px * 4 and rng.random() < 0.5:
        draw_barcode(sheet.canvas.image, (sheet.left, y + theme.body_px), theme.body_px * 2, rng)
