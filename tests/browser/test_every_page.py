"""Every page of every role: answers, fits a phone, breaks no policy, and axe finds nothing serious."""

from __future__ import annotations

import pytest
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from tests.browser.test_layout import serious

pytestmark = pytest.mark.browser

# Not pages: files, fragments, endpoints, forms that are sent from elsewhere.
APART = ("admin:", "accounts:csrf", "accounts:logout", "accounts:shortcuts", "set_language")


def page_names() -> list[str]:
    """Names of all addresses that take no argument, as the site's own address table holds them."""
    found: list[str] = []

    def walk(patterns, namespace: str) -> None:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
                walk(pattern.url_patterns, inner)
            elif isinstance(pattern, URLPattern) and pattern.name:
                found.append(namespace + pattern.name)

    walk(get_resolver().url_patterns, "")
    return [name for name in dict.fromkeys(found) if not name.startswith(APART)]


def addresses(campaign) -> list[str]:
    """Addresses of all pages without an argument, and of the campaign's own."""
    made = []
    for name in page_names():
        for arguments in ({}, {"slug": campaign.slug}):
            try:
                made.append(reverse(name, kwargs=arguments))
            except NoReverseMatch:
                continue
            break
    return [address for address in dict.fromkeys(made) if not address.startswith("/api/")]


PARTS = [
    *(("admin", i, 5) for i in range(5)),
    ("annotator", 0, 2),
    ("annotator", 1, 2),
    (None, 0, 1),
]


@pytest.mark.parametrize(("role", "part", "parts"), PARTS)
def test_every_page_is_sound(live_server, page, world, sign_in, problems, role, part, parts):
    campaign = world.open_campaign(images=4)
    if role:
        sign_in(world.annotator(role=role))
    faults, seen = [], 0
    for address in addresses(campaign)[part::parts]:
        reply = page.request.get(live_server.url + address, max_redirects=0)
        kind = reply.headers.get("content-type", "")
        if reply.status >= 500:
            faults.append(f"{address}: {reply.status}")
        if reply.status != 200 or "html" not in kind or "<html" not in reply.text():
            continue
        seen += 1
        faults += look(page, live_server.url + address, "light", 1280)
        faults += look(page, live_server.url + address, "dark", 360)
    page.goto("about:blank")
    page.wait_for_timeout(300)
    assert faults == []
    assert problems == []
    assert seen >= (3 if role == "admin" else 1)


def look(page, url: str, scheme: str, width: int) -> list[str]:
    """Faults of one page at one width in one theme."""
    page.set_viewport_size({"width": width, "height": 740})
    page.emulate_media(color_scheme=scheme)
    page.goto(url)
    page.wait_for_timeout(150)
    rules = None if scheme == "light" else ["color-contrast"]  # the rest does not depend on it
    faults = [f"{url} {scheme}: {fault}" for fault in serious(page, rules)]
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    return faults + ([f"{url}: {wide} px wide at {width}"] if wide > width else [])
