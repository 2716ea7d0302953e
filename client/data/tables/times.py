"""Times in all forms that tables hold. The whole column decides on its form, never a cell."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from client.data.tables.schema import LEAVE_OUT, CellError, Clock, Dates
from client.data.tables.table import PLAIN, drop_missing, match_cells, to_flags, to_text, try_cast
from common.arrays import Flags, Floats

FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1990, 2101))
"""Dates lie from the first to before the last; smaller numbers are an order."""
EXCEL_FIRST, EXCEL_LAST, EXCEL_EPOCH = 20_000, 80_000, 25_569
"""Day numbers of 1954, 2119 and 1970 in a spreadsheet."""
UNITS = {"nano": (1e17, 1e9), "micro": (1e14, 1e6), "milli": (1e11, 1e3)}
"""Prefix of seconds -> least number that is in this unit, and units of a second."""
TICKS = 6.3e17, 6.63e17
"""Numbers that are ticks of 2000 to 2100 by the clock of .NET, and nanoseconds of 1990."""
COMPACT = {8: "YYYYMMDD", 10: "YYYYMMDDHH", 12: "YYYYMMDDHHMM", 14: "YYYYMMDDHHMMSS"}
"""Dates that are written as one number, by their digits."""
MOST, SAMPLE = 0.9, 1_000
"""Share of a column that decides its form, and numbers that are looked at first."""
HOUR, DAY = 3_600, 86_400
ORDERED = 2.0**-40
"""Factor that makes an order of any numbers, so that they are no dates."""

ISO = r"^\d{4}-\d\d-\d\d([T ]([01]\d|2[0-3])(:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?$"
OFFSET = r"(:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d(?::?\d\d)?)$"
WEEK = r"^\d{4}-?W\d\d(-?[1-7])?$"
SLASHED = r"^(?P<first>\d{1,2})[/-](?P<second>\d{1,2})[/-](?P<third>\d{4}|\d\d)\b"
HALF_DAY, MIDNIGHT = r"(?i)(\d) *([ap])\.?m\.?(\W|$)", r"([T ])24(?::00(?::00(?:\.0+)?)?|$)"
SPAN = r"^(\S.*?:\d\d\S*) +(?:[-–—]|to|until|bis) +\S*\d.*$|^(\d{4}-\d\d-\d\d[^/]*)/(?:\d{4}-|PT?\d).*$"
"""Begin and end in one cell, of which the begin is read."""
SCIENTIFIC = r"^\d\.(?P<digits>\d+)[eE]\+?(?P<power>\d{1,2})$"
EXPONENT = r"^(\d+)[.,](\d+[eE]\+?\d+)$|^(\d{5,}),(\d+)$"
"""Numbers that a spreadsheet cut, and its days with a decimal comma."""
REGION = r" *\[?([A-Z][A-Za-z]+/[A-Za-z_/+-]+)\]?$"
SPELLINGS = (
    (r"(?i)(\d) *(?:z|utc|gmt)$", r"\1Z"),
    (r"(:\d\d) +([+-]\d)", r"\1\2"),
    (r"(\d)(?:[Tt]| +)(\d)", r"\1 \2"),
    (r" (\d\d?) ?h ?(\d\d)$", r" \1:\2"),
    (r"(:\d\d)[.,](\d{1,6})\d*", r"\1.\2"),
    (r"^(\d{8})(\d{2,6})$", r"\1 \2"),
    (r"^(\d{4})(\d\d)(\d\d)( |$)", r"\1-\2-\3\4"),
    (r"^(\S{8,10} \d\d)(\d\d)(\d\d)", r"\1:\2:\3"),
    (r"^(\S{8,10} \d\d)(\d\d)(Z|[+-]|$)", r"\1:\2\3"),
    (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})\b", r"\1-\2-\3"),
    (r"^(\d{1,2})\.(\d{1,2})\.(\d{4})\b", r"\3-\2-\1"),
    (r"^(\d{1,2})\.(\d{1,2})\.([0-6]\d)\b", r"20\3-\2-\1"),
    (r"^(\d{1,2})\.(\d{1,2})\.(\d\d)\b", r"19\3-\2-\1"),
)
"""Ways to write ISO 8601, and dates between points, whose day comes first."""
OF_ISO = 9
"""Number of those that write ISO 8601."""
CENTURIES = ((r"^(\d\d?[/-]\d+[/-])([0-6]\d)\b", r"\120\2"), (r"^(\d\d?[/-]\d+[/-])(\d\d)\b", r"\119\2"))
ORDERS = {"dmy": r"\3-\2-\1", "mdy": r"\3-\1-\2"}
SINGLE_DIGIT = (r"(^|[-+: ])(\d)\b", r"\10\2")

DAYS = (
    r"^(?:mo|di|mi|do|fr|sa|so|(?:mon|tue|wed|thu|fri|sat|sun|dien|mitt|don|sam|sonn|lun|mardi|marte|mer|mié|jeu|jue|gio|"
    r"ven|vie|sáb|sab|dim|dom)[\p{L}-]*)\.?,? +"
)
MONTHS = "jan|ene|gen feb|fév|fev mar|mär|mrz|mrt apr|avr|abr may|mai|mei|mag jun|juin|giu jul|juil|lug aug|ago|août"
MONTHS += " sep|set oct|okt|ott|out nov dec|dez|dic|déc"
LAYOUTS = (
    (r"(?: de|(\d) of)\b", r"\1"),
    (r"^(\d{1,2})(?:st|nd|rd|th|\.)?[ /-]*@(\d\d)@[ ,/-]*(\d{4})\b[:,]?", r"\3-\2-\1 "),
    (r"^(\d{1,2})[ ./-]*@(\d\d)@[ ,/-]*([0-6]\d)\b", r"20\3-\2-\1"),
    (r"^(\d{1,2})[ ./-]*@(\d\d)@[ ,/-]*(\d\d)\b", r"19\3-\2-\1"),
    (r"^@(\d\d)@[ -]*(\d{1,2}) +(\d{1,2}:\S+) +((?:[a-z]+ +)?)(\d{4})$", r"\5-\1-\2 \3 \4"),
    (r"^@(\d\d)@[ /-]*(\d{1,2})(?:st|nd|rd|th)?[ ,/-]+(\d{4})\b,?", r"\3-\1-\2"),
    (r"^(\d{4})[ /-]*@(\d\d)@[ /-]*(\d{1,2})\b", r"\1-\2-\3"),
    (r" +at +| *uhr$", " "),
    (r" +$", ""),
)
"""Dates with the name of a month, whose number stands between @."""
ZONES = {
    **{"wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "mez": 1, "mesz": 2},
    **{"eet": 2, "eest": 3, "msk": 3, "jst": 9, "aest": 10, "aedt": 11},
    **{"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7},
}
"""Abbreviations of zones, in hours from UTC; those of North America are those of RFC 2822."""

EXAMPLES = {
    "unix": "Unix seconds such as 1396867869",
    "excel": "day numbers such as 41736.45",
    "dmy": "dates such as 07/04/2014 10:51",
    "mdy": "dates such as 04/07/2014 10:51",
    "ymd": "dates such as 14/04/07 10:51",
}
EXAMPLE = "ISO 8601 such as 2014-04-07T10:51:09Z"


def to_times(column: Any, dates: Dates, clock: Clock, missing: tuple[str, ...] = ()) -> Any:
    """Return a column as seconds from 1970, floats, null where there is no time.

    Args:
        column: Text, times, or numbers.
        dates: Form of the times.
        clock: `utc`: instants; a time without an offset is in UTC. `wall`: readings of a local clock; an offset is
            dropped.
        missing: Further texts that stand for a missing value.

    Raises:
        CellError: Cells are no times, lie outside 1990 to 2100, are dates in an unsettled order, or differ in form.
    """
    if types.is_timestamp(column.type) or types.is_date(column.type):
        return _checked(_of_stamps(column, clock), clock)
    if types.is_floating(column.type) or types.is_integer(column.type):
        return _checked(_numbered(column.cast(pyarrow.float64(), safe=False), dates), clock, dates)
    is_plain = dates in ("auto", "iso") and types.is_string(column.type)
    stamps = try_cast(column, pyarrow.timestamp("us")) if is_plain else None
    if stamps is not None:
        return _checked(_of_stamps(stamps, clock), clock)
    text = pc.replace_substring_regex(drop_missing(to_text(column), missing), EXPONENT, r"\1\3.\2\4")
    if dates != "auto":
        return _checked(_dated(text, dates, clock), clock)
    _check_digits(text, clock)
    numeric = pc.fill_null(match_cells(text, PLAIN), False)
    dated = pc.if_else(numeric, None, text)
    numbers = _numbered(pc.if_else(numeric, text, None).cast(pyarrow.float64()), dates)
    if dated.null_count == len(dated):
        return _checked(numbers, clock, dates)
    return _checked(np.where(np.isnan(numbers), _dated(dated, dates, clock), numbers), clock, dates)


def _check_digits(text: Any, clock: Clock) -> None:
    """Accept numbers such as 1.709251E+12, which a spreadsheet writes, if they are exact to a second.

    Raises:
        CellError: Digits are lost.
    """
    if pc.any(pc.match_substring_regex(text, SCIENTIFIC)).as_py():
        found = pc.extract_regex(text, SCIENTIFIC)
        power = pc.cast(pc.struct_field(found, "power"), pyarrow.int64())
        least = pc.min(pc.subtract(power, pc.utf8_length(pc.struct_field(found, "digits")))).as_py()
        per = next((per for bound, per in UNITS.values() if 10.0 ** pc.max(power).as_py() >= bound), 1.0)
        if 10.0**least > per:
            problem = f"has lost digits, so that it is exact to {10.0**least / per:,.0f} seconds only"
            remedy = "save the column as whole numbers"  # sensors need exact ones
            remedy += ", or say --dates unix to read it as it is" if clock == "utc" or 10.0**least < 300 * per else ""
            raise CellError(to_flags(match_cells(text, SCIENTIFIC)), problem, remedy)


def join_times(date: Any, columns: Sequence[Any]) -> Any:
    """Return dates and clock times as one text: a date and a clock, or a year, month, day, hour and so on."""
    columns = [
        pc.replace_substring_regex(column, r"^(\d+)(?:\.0+| *[-–] *\d\d?)$", r"\1") for column in (date, *columns)
    ]
    if len(columns) > 2:
        date, *columns = pc.binary_join_element_wise(*columns[:3], "-"), *columns[3:]
        clock = pc.binary_join_element_wise(*(pc.utf8_lpad(one, 2, "0") for one in columns), ":") if columns else None
    else:
        date, clock = columns
        date = pc.replace_substring_regex(date, r"[ T]00:00(:00(\.0+)?)?$", "")
        if pc.any(pc.match_substring(date, ":")).as_py():
            return date
        width = pc.max(pc.utf8_length(clock)).as_py() or 0
        if width > 2 and pc.all(match_cells(clock, r"^\d+$")).as_py():  # 93000 is 9:30
            clock = pc.utf8_lpad(clock, 6 if width > 4 else 4, "0")
        date = pc.replace_substring_regex(date, r"^(\d\d)(\d\d)(\d\d)$", r"\1-\2-\3")
    return date if clock is None else pc.binary_join_element_wise(date, clock, " ")


def _dated(text: Any, dates: Dates, clock: Clock) -> Floats:
    """Return text as seconds, not-a-number for null.

    Raises:
        CellError: Cells are no times.
    """
    later: Floats = np.zeros(len(text))
    halves: Mapping[str, Flags] = {}
    zones: Any = None
    if not pc.all(match_cells(text, ISO)).as_py():
        if pc.any(match_cells(text, WEEK)).as_py():
            text = pyarrow.array(map(_of_week, text.to_pylist()), pyarrow.string())
        text, zones = _without_zones(pc.replace_substring_regex(text, SPAN, r"\1\2"))
        halves = {half: to_flags(match_cells(text, HALF_DAY.replace("[ap]", half))) for half in "ap"}
        later = DAY * to_flags(match_cells(text, MIDNIGHT)).astype(np.float64)
        text = pc.replace_substring_regex(text, HALF_DAY, r"\1\3")
        text = _respelt(pc.replace_substring_regex(text, MIDNIGHT, r"\100:00"), dates)
    wrong = to_flags(pc.invert(match_cells(text, ISO)))
    zoned = pc.fill_null(match_cells(text, OFFSET), False)
    naive = pc.replace_substring_regex(text, OFFSET, r"\1")
    stamps = None if wrong.any() else try_cast(naive, pyarrow.timestamp("us"))
    instants = try_cast(pc.if_else(zoned, text, None), pyarrow.timestamp("us", "UTC"))
    if stamps is None or instants is None:
        wrong |= np.array([not _is_time(cell) for cell in text.to_pylist()], bool)
        if pc.all(match_cells(text, r"^\d\d:\d\d(:\d\d(\.\d+)?)?$")).as_py():
            raise CellError(wrong, "is a clock time without a date", f"write {EXAMPLE}")
        raise CellError(wrong, "is not a time", f"write {EXAMPLES.get(dates, EXAMPLE)}, or {LEAVE_OUT}")
    local = _of_stamps(stamps, "wall")
    if halves:
        hour = local // HOUR % 24
        wrong = (halves["a"] & (hour > 12)) | (halves["p"] & (hour == 0))
        if wrong.any():
            raise CellError(wrong, "is no time of a 12-hour clock", f"correct it, or {LEAVE_OUT}")
        later += HOUR * (12.0 * (halves["p"] & (hour < 12)) - 12.0 * (halves["a"] & (hour == 12)))
    if clock == "wall":
        return local + later
    if zones is not None and zones.null_count < len(zones):
        return _in_zones(local + later, zones)
    return np.where(to_flags(zoned), _of_stamps(instants, "utc"), local) + later


def _of_week(cell: str | None) -> str | None:
    """Return the Monday, or the day, of an ISO week as a date; other text unchanged."""
    try:
        return date.fromisoformat(cell).isoformat() if cell and "W" in cell else cell
    except ValueError:
        return cell


def _respelt(text: Any, dates: Dates) -> Any:
    """Return dates in all recognised forms as ISO 8601.

    Raises:
        CellError: It is not settled whether the day or the month comes first.
    """
    text = pc.replace_substring_regex(text, f"(?i){DAYS}", "")
    if pc.any(match_cells(text, rf"(?i)\b(?:{'|'.join(MONTHS.split())})")).as_py():
        for number, names in enumerate(MONTHS.split(), start=1):
            text = pc.replace_substring_regex(text, rf"(?i)\b(?:{names})[a-zäéû]*\.?", f"@{number:02}@")
        for pattern, spelling in LAYOUTS:
            text = pc.replace_substring_regex(text, f"(?i){pattern}", spelling)
    for pattern, spelling in SPELLINGS if dates != "iso" else SPELLINGS[:OF_ISO]:
        text = pc.replace_substring_regex(text, pattern, spelling)
    slashed = to_flags(match_cells(text, SLASHED))
    if slashed.any() and dates != "iso":
        order = dates if dates in (*ORDERS, "ymd") else _order(text, slashed)
        if order == "ymd":
            text = pc.replace_substring_regex(text, r"^(\d\d?)[/-](\d\d?)[/-](\d\d?)\b", r"\3/\2/\1")
        for pattern, spelling in CENTURIES:
            text = pc.replace_substring_regex(text, pattern, spelling)
        pattern = r"^(\d{1,2})[/-](\d{1,2})[/-](\d{4})\b"
        text = pc.replace_substring_regex(text, pattern, ORDERS.get(order, ORDERS["dmy"]))
    return pc.replace_substring_regex(text, *SINGLE_DIGIT)


def _order(text: Any, slashed: Flags) -> str:
    """Return the order of day, month and year that the whole column allows.

    Raises:
        CellError: It allows several, or none.
    """
    fields = pc.extract_regex(text.filter(pyarrow.array(slashed)), SLASHED)
    first, second, third = (
        pc.struct_field(fields, field).cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
        for field in ("first", "second", "third")
    )
    remedy = "say --dates dmy or --dates mdy"
    if third.max() <= 31 and third.min() > 0 and second.max() <= 12:  # a year of two digits may come first
        years, days = (len(np.unique(field)) for field in (first, third))
        if first.max() > 31 or years < days:
            return "ymd"
        if years == days:
            remedy = "say --dates dmy or --dates ymd" if first.max() > 12 else f"{remedy}, or --dates ymd"
            raise CellError(slashed, "may begin with the year, the day or the month", remedy)
    if (first.max() > 12) == (second.max() > 12):
        among = "may begin with the day or the month" if first.max() <= 12 else "stands among dates in another order"
        raise CellError(slashed, among, remedy)
    return "dmy" if first.max() > 12 else "mdy"


def _without_zones(text: Any) -> tuple[Any, Any]:
    """Return text without regions such as Europe/Paris, and those; abbreviations of zones become offsets."""
    regions = pc.struct_field(pc.extract_regex(text, REGION.replace("([", "(?P<zone>[", 1)), "zone")
    text = pc.replace_substring_regex(text, REGION, "")
    if pc.any(match_cells(text, rf"(?i)\d *(?:{'|'.join(ZONES)})$")).as_py():
        for zone, hours in ZONES.items():
            text = pc.replace_substring_regex(text, rf"(?i)(\d) *{zone}$", rf"\1{hours:+03}:00")
    offset = pc.fill_null(match_cells(text, OFFSET), False)
    return text, pc.if_else(offset, None, regions)


def _in_zones(seconds: Floats, zones: Any) -> Floats:
    """Return instants of clocks in regions; null stands for UTC."""
    found = seconds.copy()
    for zone in zones.drop_null().unique().to_pylist():
        rows = to_flags(pc.equal(zones, zone))
        stamps = pyarrow.array((seconds[rows] * 1e6).astype(np.int64)).cast(pyarrow.timestamp("us"))
        try:
            instants = pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="latest")
        except (pyarrow.ArrowInvalid, ValueError):
            raise CellError(rows, "names an unknown time zone", "write an offset such as +01:00") from None
        found[rows] = _of_stamps(instants, "utc")
    return found


def _is_time(text: str | None) -> bool:
    if text is None:
        return True
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _of_stamps(stamps: Any, clock: Clock) -> Floats:
    """Return timestamps or days as seconds."""
    if clock == "wall" and types.is_timestamp(stamps.type) and stamps.type.tz:
        stamps = pc.local_timestamp(stamps)
    micros = stamps.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64())
    seconds: Floats = micros.to_numpy(zero_copy_only=False) / 1e6
    return seconds


def _numbered(numbers: Any, dates: Dates) -> Floats:
    """Return numbers as seconds: compact dates, Unix time, days of a spreadsheet, or an order.

    Raises:
        CellError: All are what a spreadsheet makes of dates, or some differ in form from the column.
    """
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    filled = ~np.isnan(values)
    if dates == "order":
        return np.asarray(values * ORDERED)
    if dates == "excel":
        return np.asarray(np.round((values - EXCEL_EPOCH) * DAY, 3))
    if not filled.any():
        return np.asarray(values)
    sample = values[filled][:: max(1, int(filled.sum()) // SAMPLE)]
    if dates != "unix" and np.isfinite(of_compact(sample)).mean() >= MOST / 2:
        seconds = of_compact(values)
        if np.isfinite(seconds).sum() >= MOST * filled.sum():
            if (wrong := filled & np.isnan(seconds)).any():
                raise CellError(wrong, "is no date such as 20140407, as the others are", f"correct it, or {LEAVE_OUT}")
            return seconds
    days = filled & (values >= EXCEL_FIRST) & (values <= EXCEL_LAST)
    if dates == "auto" and (days == filled).all():
        remedy = "say --dates excel, or --dates unix for seconds since 1970"
        first = datetime.fromtimestamp((values[days.argmax()] - EXCEL_EPOCH) * DAY, UTC)
        raise CellError(days, f"looks like an Excel date, {first:%Y-%m-%d}", remedy)
    if dates == "auto" and ((values > TICKS[0]) & (values < TICKS[1]))[filled].all():
        remedy = "write ISO 8601, or say --dates unix for nanoseconds"
        raise CellError(filled, "may be ticks of .NET or nanoseconds", remedy)
    seconds, size = values.copy(), np.abs(values)
    for least, units in reversed(UNITS.values()):
        seconds = np.where(size > least, values / units, seconds)
    return np.where((values > FIRST) & (seconds < FIRST), -np.inf, seconds)


def of_compact(values: Floats) -> Floats:
    """Return dates such as 20140407 or 201404071051 as seconds, not-a-number where a number is none."""
    whole = np.where((values == np.floor(values)) & (values >= 1e7) & (values < 1e14), values, 0).astype(np.int64)
    digits = np.floor(np.log10(np.maximum(whole, 1))).astype(np.int64) + 1
    whole *= 10 ** np.where(np.isin(digits, list(COMPACT)), 14 - digits, 0)
    day, clock = whole // 10**6, whole % 10**6
    year, month = day // 10**4, day // 100 % 100
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day % 100 - 1)
    hour, minute, second = clock // 10**4, clock // 100 % 100, clock % 100
    fits = (year >= 1990) & (year <= 2100) & (month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == months)
    fits &= ((hour < 24) & (minute < 60) & (second < 60)) | (clock == 240_000)
    seconds = days.astype(np.int64) * float(DAY) + hour * HOUR + minute * 60 + second
    return np.where(fits & np.isin(digits, list(COMPACT)), seconds, np.nan)


def _checked(seconds: Floats, clock: Clock, dates: Dates = "iso") -> Any:
    """Accept times of 1990 to 2100, or small numbers alone, which are an order rather than dates.

    Raises:
        CellError: Some lie outside, or dates and an order stand in one column.
    """
    filled = ~np.isnan(seconds)
    early, late = filled & (seconds < FIRST), seconds >= LAST
    by_number = dates not in ("iso", "unix") and clock == "utc"
    if by_number and (dates == "order" or 2 * early.sum() > filled.sum()):
        if (wrong := filled & ~early).any():
            raise CellError(
                wrong, "stands among small numbers, which give an order", "say --dates order or --dates unix"
            )
        wrong = early & (np.abs(seconds) > FIRST)
    else:
        wrong = early | late
    if dates == "unix" and clock == "utc":
        wrong = late | (early & ((np.abs(seconds) > FIRST) | (early.sum() < filled.sum())))
    if wrong.any():
        raise CellError(wrong, "lies outside the years 1990 to 2100", f"correct it, or {LEAVE_OUT}")
    return pyarrow.array(seconds, from_pandas=True)


def is_order(times: Any) -> bool:
    """Return True if a column holds an order, no dates."""
    last = pc.max(times).as_py()
    return last is not None and last < FIRST
