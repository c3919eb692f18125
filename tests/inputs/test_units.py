"""Quantities: known conversions, pint as the independent oracle, and one sentence per fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradespace.errors import InputError
from tradespace.inputs.fields import Quantity
from tradespace.inputs.units import _UNITS, number, parse

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("900 GB/s", "byte/s", 9e11),
        ("400 Gb/s", "byte/s", 5e10),
        ("400Gbps", "byte/s", 5e10),
        ("312 TFLOP/s", "FLOP/s", 3.12e14),
        ("312 TFLOPS", "FLOP/s", 3.12e14),
        ("3.35 TB/s", "byte/s", 3.35e12),
        ("141GB", "byte", 1.41e11),
        ("80 GiB", "byte", 80 * 2**30),
        ("25 us", "s", 25e-6),
        ("25 µs", "s", 25e-6),
        ("2 d", "s", 172800.0),
        ("0.7 kW", "W", 700.0),
        ("3.6 USD/h", "USD/s", 1e-3),
        ("0.36 USD/kWh", "USD/J", 1e-7),
        ("360 g/kWh", "kg/J", 1e-7),
        ("85 %", "", 0.85),
        ("1e9", "byte", 1e9),
        ("14.9 us/MB^0.5", "s/byte^0.5", 14.9e-9),
        (80e9, "byte", 8e10),
        (7, "s", 7.0),
    ],
)
def test_known_conversions(text, unit, value):
    assert parse(text, unit, "here") == pytest.approx(value, rel=1e-15)


def test_every_unit_agrees_with_pint():
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry(case_sensitive=True, on_redefinition="ignore")
    registry.define("FLOP = [work]")
    spelled = {
        "B": "byte",
        "b": "bit",
        "s": "second",
        "W": "watt",
        "J": "joule",
        "Wh": "watt_hour",
        "g": "gram",
        "t": "tonne",
        "FLOP": "FLOP",
        "d": "day",
        "h": "hour",
    }
    units = [(prefix, name) for name in ("B", "b", "FLOP", "W", "J", "Wh", "g", "t") for prefix in _PREFIXES]
    units += [(prefix, "s") for prefix in ("", "m", "u", "n")] + [("", "d"), ("", "h")]
    for prefix, name in units:
        up, down, base = _UNITS[prefix + name]
        assert up / down == pytest.approx(registry.Quantity(1.0, prefix + spelled[name]).to(base).magnitude, rel=1e-12)


@given(st.floats(1e-3, 1e6), st.sampled_from(["GB", "MiB", "TB"]))
def test_rates_are_the_unit_over_a_second(value, unit):
    assert parse(f"{value!r} {unit}/s", "byte/s", "x") == parse(f"{value!r} {unit}", "byte", "x")


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        ("900 GB", "byte/s", "link: '900 GB' is in byte, but a bandwidth such as '450 GB/s' is needed"),
        ("80 gb", "byte", "link: unknown unit 'gb'; did you mean 'GB'?"),
        ("80 furlongs", "byte", "link: unknown unit 'furlongs'"),
        ("a lot", "byte", "link: 'a lot' is not a size such as '80 GB'"),
        ("", "byte", "link: '' is not a size"),
        (None, "byte", "link: None is not a size"),
        (True, "byte", "link: True is not a size"),
        (10**400, "byte", "link: a whole number of 401 digits is too large"),
        ("8 GB", "", "link: '8 GB' is in byte, but a plain number is needed"),
        ("1 GB/GB", "byte", "link: '1 GB/GB' is in byte/byte"),
    ],
)
def test_one_sentence_per_fault(value, unit, message):
    with pytest.raises(InputError) as fault:
        parse(value, unit, "link")
    assert str(fault.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "not a finite number"),
        ("1e999", "not a finite number"),
        (-1, "below the least possible value, 1 byte"),
        ("200 GB", "above the largest possible value, 1e+11 byte"),
        (1.5, "not a whole number"),
    ],
)
def test_bounds(value, message):
    with pytest.raises(InputError, match="^x: .*" + message.replace("+", r"\+")):
        number(value, Quantity("byte", "", 1.0, 1e11, True), "x")


def test_switches_take_true_and_false():
    assert number(True, Quantity("", "", 0.0, 1.0, True), "x") == 1.0
