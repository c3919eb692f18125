"""The Python blocks of docs/astra.md run, and print what the block after them shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "astra.md"
BLOCKS = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), BLOCKS)
@pytest.mark.filterwarnings("ignore::tradespace.astra.AstraWarning")
def test_code_blocks_print_what_the_page_shows(code: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_page_has_its_blocks() -> None:
    assert len(BLOCKS) == 2
