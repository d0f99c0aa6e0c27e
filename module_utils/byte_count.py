"""Byte counts as a person reads them in messages: decimal units, as disks and hubs state them."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def readable_bytes(size_bytes):
    """590_400_000_000 -> "590.4 GB"; below 1000 the exact number."""
    value = float(size_bytes)
    for unit in UNITS:
        if abs(value) < 999.95 or unit == UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable: the last unit always returns")
