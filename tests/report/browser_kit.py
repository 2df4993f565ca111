"""A report in real Chromium, with everything it said and asked for, and what is looked for on the page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

DRAWN_MS = 60_000

OVERLAPS = """() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest('details:not([open]) table')) continue;
    const scroller = parent.closest('.scroll');
    const clip = scroller ? scroller.getBoundingClientRect() : null;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      if (r.width < 2 || r.height < 2) continue;
      const right = clip ? Math.min(r.right, clip.right) : r.right;
      if (right - r.left < 2) continue;
      boxes.push({text: node.textContent.trim().slice(0, 40), l: r.left, r: right, t: r.top, b: r.bottom});
    }
  }
  const found = [];
  boxes.sort((a, b) => a.t - b.t);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].t < boxes[i].b; j++) {
      const w = Math.min(boxes[i].r, boxes[j].r) - Math.max(boxes[i].l, boxes[j].l);
      const h = Math.min(boxes[i].b, boxes[j].b) - Math.max(boxes[i].t, boxes[j].t);
      if (w > 1.5 && h > 3.5) found.push(boxes[i].text + ' | ' + boxes[j].text);
    }
  }
  return found;
}"""

OUTSIDE = """() => [...document.querySelectorAll(
    'main h1, main h2, main p, main label, .answer *, .panel, .legend, .block, .chart text')]
  .filter((e) => {
    const [at, main] = [e, document.querySelector('main')].map((one) => one.getBoundingClientRect());
    return at.right > main.right + 1.5 || (at.width && at.left < main.left - 1.5);
  })
  .map((e) => e.tagName + ' ' + e.className + ' ' + e.textContent.trim().slice(0, 40))"""

CROSSED = """() => {
  const found = [];
  const crosses = (text, line) => {
    const at = text.getBoundingClientRect();
    const box = {l: at.left + 1, r: at.right - 1, t: at.top + at.height * .3, b: at.bottom - at.height * .3};
    const r = line.getBoundingClientRect();
    if (r.left > box.r || r.right < box.l || r.top > box.b || r.bottom < box.t) return false;
    if (line.tagName !== "path") return true;
    const place = line.getScreenCTM();
    for (let k = 0, all = line.getTotalLength(); k <= all; k += 2) {
      const {x, y} = line.getPointAtLength(k).matrixTransform(place);
      if (x > box.l && x < box.r && y > box.t && y < box.b) return true;
    }
    return false;
  };
  for (const svg of document.querySelectorAll("main svg")) {
    const lines = [...svg.querySelectorAll(".mark-line path, .mark-rule line, .m-line, .m-tick")];
    for (const text of svg.querySelectorAll(".role-mark text, :scope > text")) {
      const halo = !["", "none"].includes(text.getAttribute("stroke") || "");
      const after = (line) => text.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (lines.some((line) => (!halo || after(line)) && crosses(text, line))) found.push(text.textContent);
    }
  }
  return found;
}"""
"""Texts that a line strikes through: one that has no halo of the ground, or one that the line is drawn over."""

EMPTY_CHARTS = """() => [...document.querySelectorAll('.chart')].filter((host) => {
  const svg = host.querySelector('svg');
  return !svg || !svg.querySelector('.role-mark path[d], .role-mark line, .role-mark text');
}).map((host) => host.id)"""


class Opened:
    """A page of a browser with the HTML ``text`` in it, drawn; ``context``: options of the browser's context."""

    def __init__(self, browser: Any, path: Path, text: str, **context: Any) -> None:
        path.write_text(text, encoding="utf-8")
        self.context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | context))
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: self.messages.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-charts=drawn]", timeout=DRAWN_MS)

    def seen(self, width: int) -> dict[str, object]:
        """What is looked for on every page of ``width`` pixels; ``IN_PLACE`` where nothing is wrong."""
        return {
            "messages": self.messages,
            "requests": [url.partition(":")[0] for url in self.requests],
            "empty charts": self.page.evaluate(EMPTY_CHARTS),
            "overlaps": self.page.evaluate(OVERLAPS),
            "struck through": self.page.evaluate(CROSSED),
            "outside": self.page.evaluate(OUTSIDE),
            "too wide": self.page.evaluate("document.documentElement.scrollWidth") > width,
        }


IN_PLACE = {
    "messages": [],
    "requests": ["file"],
    "empty charts": [],
    "overlaps": [],
    "struck through": [],
    "outside": [],
    "too wide": False,
}


Open = Callable[..., Opened]
"""Opens what a test looks at: a text of HTML, a record, or a page."""


def screenshots(tmp_path: Path) -> Path:
    """Where pictures go: ``REPORT_SCREENSHOTS`` if it is set, else pytest's temporary folder."""
    folder = Path(os.environ.get("REPORT_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def until(page: Any, test: str) -> None:
    """Wait until the expression ``test`` is true. The browser's own waiting evaluates text inside the page, which the
    policy of a report forbids."""
    for _ in range(200):
        if page.evaluate(test):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never came true: {test}")
