"""What invoices say: words by language, and content drawn from them; all of it is made up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Pair = tuple[str, str]


@dataclass(frozen=True)
class Language:
    """Words of one language. `number_marks` is (thousands, decimal)."""

    titles: tuple[str, ...]
    companies: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[str, ...]
    people: tuple[str, ...]
    parties: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    columns: tuple[str, str, str, str, str]
    items: tuple[str, ...]
    totals: tuple[str, str, str]
    notes: tuple[str, ...]
    stamps: tuple[str, ...]
    currency: str
    number_marks: tuple[str, str]
    tax_rate: float


ENGLISH = Language(
    titles=("INVOICE", "Invoice", "TAX INVOICE", "RECEIPT", "BILL"),
    companies=("Harbour Tools Ltd", "Miller & Sons", "Northgate Paper Co.", "Oak Lane Supplies", "BRIGHT OFFICE"),
    streets=("14 Mill Road", "Unit 7, Dock Street", "221 Park Avenue", "9 Chapel Lane", "Suite 400, 5th Ave"),
    cities=("Leeds LS1 4DY", "Boston, MA 02110", "Dublin 2", "Bristol BS1 6QA", "Austin, TX 78701"),
    people=("J. Whitaker", "Anna Lindqvist", "Blue Anchor Hotel", "R. Patel & Co", "City Library"),
    parties=("Bill to", "Ship to", "Sold to:"),
    numbers=("Invoice no.", "Order", "VAT no.", "Customer"),
    dates=("Date", "Due", "Delivered"),
    columns=("#", "Description", "Qty", "Price", "Amount"),
    items=(
        "Copy paper A4", "Steel bolt M8 x 40", "Ink cartridge", "Desk lamp", "USB cable 2 m", "Floor cleaner 5 l",
        "Consulting, half day", "Delivery", "Filter set", "Gloves, pair", "Hex key", "Label roll 62 mm",
    ),
    totals=("Subtotal", "VAT 20%", "Total due"),
    notes=(
        "Payment within 30 days. Late payments bear 8% interest.", "Goods remain our property until paid in full.",
        "Registered in England no. 04417733", "IBAN GB29 NWBK 6016 1331 9268 19", "Thank you for your business!",
        "E. & O. E.", "www.example.com  office@example.com",
    ),
    stamps=("PAID", "COPY", "RECEIVED"),
    currency="$",
    number_marks=(",", "."),
    tax_rate=0.20,
)  # fmt: skip

GERMAN = Language(
    titles=("RECHNUNG", "Rechnung", "QUITTUNG", "Lieferschein"),
    companies=("Gebr. Köhler GmbH", "Bürohaus Süd", "Werkzeug-Möller KG", "Hafenbäckerei", "NORDLICHT AG"),
    streets=("Lindenstraße 12", "Am Alten Markt 3", "Schloßallee 44", "Hauptstr. 7a", "Goetheplatz 1"),
    cities=("80331 München", "20095 Hamburg", "50667 Köln", "8001 Zürich", "1010 Wien"),
    people=("Fr. Jäger", "Hotel Zur Post", "Stadtwerke", "Dr. Groß", "Müller & Weiß"),
    parties=("An", "Rechnung an", "Empfänger:"),
    numbers=("Rechnungs-Nr.", "Kunde", "USt-IdNr.", "Auftrag"),
    dates=("Datum", "Fällig", "Lieferung"),
    columns=("Pos", "Bezeichnung", "Menge", "Preis", "Betrag"),
    items=(
        "Kopierpapier A4", "Sechskantschraube M6", "Tonerpatrone", "Tischleuchte", "Kabel 3 x 1,5", "Reiniger 5 l",
        "Montage, Std.", "Versand", "Filtersatz", "Handschuhe", "Dübel S8", "Ölwechsel",
    ),
    totals=("Zwischensumme", "MwSt. 19 %", "Gesamt"),
    notes=(
        "Zahlbar innerhalb von 14 Tagen ohne Abzug.", "Die Ware bleibt bis zur Bezahlung unser Eigentum.",
        "Amtsgericht Köln HRB 12345", "IBAN DE89 3704 0044 0532 0130 00", "Vielen Dank für Ihren Auftrag!",
        "Steuer-Nr. 27/361/00178", "www.example.de  post@example.de",
    ),
    stamps=("BEZAHLT", "KOPIE", "EINGANG"),
    currency="€",
    number_marks=(".", ","),
    tax_rate=0.19,
)  # fmt: skip

CHINESE = Language(
    titles=("发票", "销售单", "增值税发票", "收据"),
    companies=("海港五金有限公司", "东方办公用品", "长江贸易公司", "光明文具店"),
    streets=("中山路12号", "人民大街88号", "解放路5号3楼", "科技园B座"),
    cities=("上海市黄浦区", "广州市天河区", "北京市海淀区", "杭州市"),
    people=("李明", "王芳", "市图书馆", "金龙酒店"),
    parties=("购买方", "收货人", "客户："),
    numbers=("发票号码", "订单号", "税号"),
    dates=("日期", "交货日期"),
    columns=("序", "名称", "数量", "单价", "金额"),
    items=("复印纸A4", "螺栓M8", "墨盒", "台灯", "数据线2米", "清洁剂", "咨询费", "运费", "手套", "标签纸"),
    totals=("小计", "税额13%", "合计"),
    notes=("请于30日内付款。", "货物在付清前归我方所有。", "开户行：中国银行", "谢谢惠顾！", "电话 021-5550 1234"),
    stamps=("已付款", "副本", "收讫"),
    currency="¥",
    number_marks=(",", "."),
    tax_rate=0.13,
)


@dataclass(frozen=True)
class InvoiceContent:
    """What stands around the table; every string is one region once it is drawn."""

    title: str
    seller: tuple[str, ...]
    buyer: tuple[str, ...]
    meta: tuple[Pair, ...]
    notes: tuple[str, ...]
    stamp: str


@dataclass(frozen=True)
class Items:
    """The table: rows of (position, description, quantity, price, amount), and sums under it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    totals: tuple[Pair, ...]


def write_content(rng: np.random.Generator, words: Language) -> InvoiceContent:
    """Letterhead, buyer, numbers and dates, small print."""
    meta = [(label, _number(rng)) for label in words.numbers] + [(label, _date(rng)) for label in words.dates]
    seller = (_pick(rng, words.companies), _pick(rng, words.streets), _pick(rng, words.cities), _phone(rng))
    return InvoiceContent(
        title=_pick(rng, words.titles),
        seller=seller[: rng.integers(3, 5)],
        buyer=tuple(_pick(rng, part) for part in (words.parties, words.people, words.streets, words.cities)),
        meta=tuple(meta[index] for index in rng.permutation(len(meta))[: rng.integers(2, 5)]),
        notes=tuple(str(note) for note in rng.permutation(words.notes)[: rng.integers(2, 5)]),
        stamp=_pick(rng, words.stamps),
    )


def write_items(rng: np.random.Generator, words: Language, num_rows: int) -> Items:
    """Item rows whose amounts are quantity x price, and sums that add up."""
    rows, net = [], 0
    for position in range(1, num_rows + 1):
        # Mostly one digit: a lone figure in a column is what detectors miss first.
        quantity = int(rng.integers(1, 10)) if rng.random() < 0.8 else int(rng.integers(10, 250))
        price = int(10 ** rng.uniform(2, 4.7))
        net += quantity * price
        cells = (f"{position}", _pick(rng, words.items), f"{quantity}")
        rows.append((*cells, amount_text(price, words), amount_text(quantity * price, words)))
    tax = round(net * words.tax_rate)
    sums = [amount_text(cents, words) for cents in (net, tax, net + tax)]
    sums[2] = f"{words.currency}{sums[2]}" if rng.random() < 0.5 else f"{sums[2]} {words.currency}"
    return Items(words.columns, tuple(rows), tuple(zip(words.totals, sums, strict=True)))


def amount_text(cents: int, words: Language) -> str:
    """1234567 -> "12,345.67", with the language's marks."""
    thousands, decimal = words.number_marks
    return f"{cents // 100:,}".replace(",", thousands) + f"{decimal}{cents % 100:02d}"


def _date(rng: np.random.Generator) -> str:
    year, month, day = rng.integers((2019, 1, 1), (2027, 13, 29))
    return (f"{year}-{month:02d}-{day:02d}", f"{day:02d}.{month:02d}.{year}", f"{day}/{month}/{year}")[rng.integers(3)]


def _number(rng: np.random.Generator) -> str:
    number, suffix = rng.integers((100, 1), (99999, 100))
    return (f"{number}", f"R{number:05d}/{suffix}", f"{suffix:02d}-{number:05d}", f"{suffix}")[rng.integers(4)]


def _phone(rng: np.random.Generator) -> str:
    return "Tel. " + " ".join(f"{part:03d}" for part in rng.integers(0, 1000, 3))


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]
