"""Charts and tables in the browser: values to read, to hover, to download."""

from __future__ import annotations

import csv
import io
import json

import pytest
from playwright.sync_api import expect

from tests.browser.judging import until

pytestmark = pytest.mark.browser

CHARTS = {
    "intervals": {
        "x_label": "α",
        "domain": [0, 1],
        "rows": [
            {"label": "counting", "value": 0.61, "low": 0.55, "high": 0.66, "n": 3120},
            {"label": "negation", "value": None, "note": "undefined: one label only"},
        ],
    },
    "dots": {
        "x_label": "Accuracy",
        "reference": 0.5,
        "rows": [
            {"label": "First", "value": 0.8, "low": 0.7, "high": 0.9, "letters": "a", "href": "#f"},
            {"label": "random", "value": 0.5, "letters": "b", "kind": "reference"},
        ],
    },
    "scatter": {
        "x": {"label": "Share", "domain": [0, 1], "format": ".0%"},
        "y": {"label": "α"},
        "points": [{"x": 0.2, "y": 0.61, "label": "counting"}, {"x": 0.2, "y": 0.61, "label": "b"}],
        "lines": [{"label": "raters 90 % right", "points": [[0.1, 0.2], [0.9, 0.4]]}],
    },
    "lines": {
        "x": {"label": "Day", "type": "time"},
        "y": {"label": "Judgements", "format": ","},
        "series": [
            {
                "label": "accept",
                "points": [{"x": "2026-11-01", "y": 3}, {"x": "2026-11-02", "y": 61}],
            }
        ],
    },
    "bars": {
        "x_label": "Images",
        "rows": [
            {
                "label": "counting",
                "parts": [{"series": "accept", "value": 61}, {"series": "reject", "value": 3}],
            }
        ],
    },
    "histogram": {
        "x_label": "s",
        "bins": [{"x0": 0, "x1": 1, "n": 61}],
        "marks": [{"x": 0.5, "label": "median 0.5 s"}],
    },
    "matrix": {"rows": ["a"], "cols": ["b"], "values": [[0.61]], "n": [[12]]},
    "heatmap": {
        "rows": ["m"],
        "cols": ["counting", "AVG"],
        "values": [[0.61, None]],
        "hrefs": [["#x", None]],
    },
}
SHOWN = {
    "intervals": ["counting", "0.61", "n 3,120", "undefined: one label only"],
    "dots": ["First", "0.80", "random", "Accuracy"],
    "scatter": ["counting", "raters 90 % right", "Share"],
    "lines": ["accept", "1 Nov", "Judgements"],
    "bars": ["counting", "64"],
    "histogram": ["median 0.5 s"],
    "matrix": ["a", "b", "0.61"],
    "heatmap": ["m", "counting", "0.61", "AVG", "–"],
}


@pytest.fixture
def draw(live_server, page, problems):
    """Put a chart on a page under the site's own content security policy."""

    def do(kind: str, data=None):
        page.goto(f"{live_server.url}/accounts/login/")
        page.evaluate(
            """async ([kind, data]) => {
                const script = Object.assign(document.createElement("script"), {
                    type: "application/json", id: "data", textContent: data });
                const main = document.querySelector("main");
                main.className = "page";
                main.innerHTML = `<figure class="chart" data-chart="${kind}" data-source="data" data-name="file">
                    <figcaption><h3>A title</h3></figcaption></figure>`;
                main.append(script);
                (await import("/static/js/charts.js")).start(main);
            }""",
            [kind, json.dumps(data or CHARTS[kind])],
        )
        return page.locator("figure")

    yield do
    page.goto("about:blank")
    assert problems == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", CHARTS)
def test_a_chart_is_read_without_hovering_and_fits_a_phone(draw, page, kind):
    page.set_viewport_size({"width": 360, "height": 740})
    figure = draw(kind)
    words = figure.locator("svg").first.evaluate("(svg) => svg.textContent")
    wanted = SHOWN[kind] if kind != "intervals" else ["counting", "0.61", "undefined"]
    assert [text for text in wanted if text not in words and text != "accept"] == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.mark.django_db(transaction=True)
def test_a_matrix_of_sixty_people_is_seen_as_a_whole_and_tells_its_numbers_on_hover(draw, page):
    """Cells with numbers would make it ten screens wide, of which nobody sees a group."""
    people = [f"{k:016x}" for k in range(60)]
    values = [[None if i == j else 0.61 + (i + j) / 1000 for j in range(60)] for i in range(60)]
    page.set_viewport_size({"width": 1280, "height": 900})
    figure = draw("matrix", {"rows": people, "cols": people, "values": values, "n": values})
    svg = figure.locator("svg").first
    assert svg.locator("rect").count() >= 3600
    assert "0.61" not in (svg.text_content() or "")
    assert svg.evaluate("(svg) => svg.getBoundingClientRect().width") <= 1280
    svg.locator("rect").nth(1).hover()
    tip = figure.locator(".chart-tip")
    expect(tip).to_contain_text("0.61")
    expect(tip).to_contain_text(people[1])
    page.set_viewport_size({"width": 360, "height": 740})
    until(page, lambda: page.evaluate("() => document.documentElement.scrollWidth") <= 360)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", CHARTS)
def test_a_chart_is_downloaded_as_csv_svg_and_png(draw, page, kind):
    figure = draw(kind)
    words = figure.locator("svg").first.evaluate("(svg) => svg.textContent")
    assert [text for text in SHOWN[kind] if text not in words] == []

    def download(label: str) -> bytes:
        with page.expect_download() as waiting:
            figure.get_by_role("button", name=label).click()
        return waiting.value.path().read_bytes()

    rows = list(csv.reader(io.StringIO(download("CSV").decode())))
    assert len(rows) >= 2
    assert any(number in "".join(rows[1] + rows[-1]) for number in ("61", "0.8"))
    svg = download("SVG").decode()
    assert svg.startswith("<svg")
    assert not [word for word in ("var(", "class=", "style=") if word in svg]
    assert download("PNG").startswith(b"\x89PNG")
    figure.locator("summary").click()
    figure.locator("table tbody tr").first.wait_for()
    assert figure.locator("table tbody tr").count() == len(rows) - 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["intervals", "lines", "bars", "matrix"])
def test_a_chart_without_data_says_so(draw, kind):
    empty = {"rows": [], "cols": [], "values": [], "series": [], "x": {"type": "time"}, "y": {}}
    figure = draw(kind, empty)
    assert "Nothing to draw yet" in figure.inner_text()


@pytest.mark.django_db(transaction=True)
def test_values_appear_on_hover_and_colours_follow_the_theme(draw, page):
    figure = draw("intervals")
    figure.locator(".hit").first.hover()
    expect(figure.locator(".chart-tip")).to_contain_text("95 % interval 0.55 … 0.66")
    colour = "(node) => getComputedStyle(node).fill"
    light = figure.locator("circle").first.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    until(page, lambda: figure.locator("circle").first.evaluate(colour) != light)


@pytest.mark.django_db(transaction=True)
def test_a_table_is_sorted_filtered_and_saved_and_the_address_keeps_it(live_server, page):
    page.goto(f"{live_server.url}/accounts/login/")
    html = """<div data-table-tools="t"><input type="search" data-filter><span data-count></span>
        <button type="button" data-csv>CSV</button></div>
        <table class="table" data-table="t"><thead><tr><th>Name</th><th class="num">n</th></tr></thead>
        <tbody><tr><td>beta</td><td class="num" data-value="1000">1,000</td></tr>
        <tr><td>alpha, "a"</td><td class="num" data-value="20">20</td></tr>
        <tr><td>=cmd()</td><td class="num undefined" data-value="">undefined</td></tr></tbody></table>"""
    start = """async (html) => {
        document.querySelector("main").innerHTML = html;
        (await import("/static/js/table.js")).start(); }"""
    page.evaluate(start, html)
    names = "() => [...document.querySelectorAll('tbody tr:not([hidden]) td:first-child')].map((n) => n.textContent)"
    page.get_by_role("button", name="n", exact=True).click()
    assert page.evaluate(names) == ["beta", 'alpha, "a"', "=cmd()"]
    page.get_by_role("button", name="n", exact=True).click()
    assert page.evaluate(names) == ['alpha, "a"', "beta", "=cmd()"]  # the undefined stays last
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(io.StringIO(waiting.value.path().read_text())))
    assert rows == [["Name", "n"], ['alpha, "a"', "20"], ["beta", "1000"], ["'=cmd()", ""]]
    page.fill("[data-filter]", "ALPHA")
    assert page.evaluate(names) == ['alpha, "a"']
    assert page.locator("[data-count]").inner_text() == "1 of 3"
    page.reload()
    page.evaluate(start, html)
    assert page.evaluate(names) == ['alpha, "a"']
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.goto("about:blank")
