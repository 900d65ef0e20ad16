# SPDX-License-Identifier: Apache-2.0
"""The HTML report as a browser shows it: on a desktop and a phone, light and dark, with and without scripts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, running
from pages import whole_run
from resulting import every, hostile, red, run
from stored import stored

from crosslane.html.page import html_text
from crosslane.results import RunResult
from crosslane.triage.picture import Grid, svg

DESKTOP, PHONE = 1280, 390
BUDGET_BYTES, BUDGET_MS = 3 << 20, 1000.0
_TOO_WIDE = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && !e.closest('.box, pre, .prose, .hide') && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + '.' + e.className).join(' ')"""
_ROWS = """[...document.querySelectorAll('.matrix tr[data-name]')].filter(e => e.checkVisibility())
    .map(e => e.dataset.name)"""
# What is far below is laid out too, else it would fit any width.
_OPENED = """document.querySelectorAll('section').forEach(section => {
    section.style.contentVisibility = 'visible';
    [...section.querySelectorAll('details')].slice(0, 4).forEach(e => { e.open = true }) })"""
_PAINTS = """new Promise(done => { const look = () => {
    const found = performance.getEntriesByType('paint').map(e => [e.name, e.startTime]);
    found.length > 1 ? done(found) : setTimeout(look, 20) }; look() })"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def whole() -> RunResult:
    return whole_run()


def written(folder: Path, result: RunResult) -> str:
    file = folder / "report.html"
    file.write_text(html_text(result), encoding="utf-8")
    return file.as_uri()


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("kind", ["green", "red", "hostile"])
def test_it_fits_the_window_and_loads_nothing(
    browser: Browser, whole: RunResult, tmp_path: Path, kind: str, width: int, *, dark: bool
) -> None:
    address = written(tmp_path, {"green": whole, "red": every(), "hostile": hostile()}[kind])
    page = browser.open(address, width=width, dark=dark)
    (tmp_path / "top.png").write_bytes(page.picture())
    page.value(_OPENED)
    assert page.value("document.documentElement.scrollWidth") <= page.value("innerWidth") == width
    assert page.value(_TOO_WIDE) == ""
    picture = page.picture(height=4000)
    (tmp_path / "more.png").write_bytes(picture)
    assert size_of(picture) == (width, 4000)
    assert page.told == []
    assert {asked.partition(":")[0] for asked in page.asked} <= {"file", "data"}
    assert [asked for asked in page.asked if asked.startswith("file:")] == [address]
    shade = page.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, shade[4:-1].split(","))) < 200) is dark


def test_a_run_of_the_gate_is_small_and_is_painted_at_once(browser: Browser, whole: RunResult, tmp_path: Path) -> None:
    address = written(tmp_path, whole)
    assert sum(1 for _ in whole.cells()) > 3000
    assert (tmp_path / "report.html").stat().st_size < BUDGET_BYTES
    for width in (DESKTOP, PHONE):  # the better of two: other tests run beside this one
        paints = [dict(browser.open(address, width=width).value(_PAINTS)) for _ in range(2)]
        assert min(paint["first-contentful-paint"] for paint in paints) < BUDGET_MS, (width, paints)


def test_it_is_read_without_scripts(browser: Browser, tmp_path: Path) -> None:
    address = written(tmp_path, every())
    page = browser.open(address + "#a0-1", width=PHONE, script=False)
    shown = page.value("document.body.innerText")
    for word in ("Red:", "crosslane repro", "x86_64_native", "toy-bad"):
        assert word in shown
    assert page.value("getComputedStyle(document.querySelector('.filter')).display") == "none"
    assert page.value("document.querySelector('#a0-1').checkVisibility()")


def test_the_filter_leaves_what_fits(browser: Browser, whole: RunResult, tmp_path: Path) -> None:
    page = browser.open(written(tmp_path, whole), width=DESKTOP)
    assert len(page.value(_ROWS)) > 60
    page.value(
        "{ const e = document.getElementById('filter'); e.value = 'xts sm4'; e.dispatchEvent(new Event('input')) }"
    )
    assert sorted(page.value(_ROWS)) == ["xts(sm4)", "xts_gb(sm4)"]
    page.value("document.getElementById('notgreen').click()")
    assert page.value(_ROWS) == []
    assert page.value("document.getElementById('shown').textContent").startswith("0 of ")
    assert page.told == []


def test_pictures_are_seen(browser: Browser, tmp_path: Path) -> None:
    grid = Grid("wrong blocks by length", "blocks", "block", tuple((a, b, b > 4) for a in range(60) for b in range(a)))
    fault = stored(tmp_path / "findings", triage="# x\n\n| a |\n|---|\n| b |\n", svg=svg(grid))
    file = tmp_path / "report.html"
    file.write_text(html_text(run(red(faults=(fault,))), findings=tmp_path / "findings"), encoding="utf-8")
    page = browser.open(file.as_uri() + "#f0", width=PHONE)
    seen = "Promise.all([...document.images].map(i => (i.loading = 'eager', i.decode().then(() => i.width > 0))))"
    assert page.value(seen) == [True]
    (tmp_path / "seen.png").write_bytes(page.picture())
    assert page.told == []


def test_what_a_policy_forbids_is_seen_here(browser: Browser, tmp_path: Path) -> None:
    """The counts of these tests can be other than nothing: a page that was tampered with is told of."""
    text = html_text(every())
    file = tmp_path / "report.html"
    file.write_text(text.replace("</main>", "<img src='https://nowhere.invalid/x.png'><script>1</script></main>", 1))
    page = browser.open(file.as_uri(), width=PHONE)
    assert len([told for told in page.told if "Content Security Policy" in told]) >= 2
    assert any(asked.startswith("https") for asked in page.asked)
    file.write_text(text.replace("<main>", "<main><p style>" + "<b class=v>wide</b>" + "</p><svg width=2000></svg>", 1))
    page = browser.open(file.as_uri(), width=PHONE)
    assert page.value("document.documentElement.scrollWidth") > PHONE
