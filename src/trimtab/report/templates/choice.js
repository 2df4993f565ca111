"use strict";
// What the reader has chosen: a part of an axis, a stream, a story. Charts share it through their signals.
const choice = (function () {
  const AXES = { time: " s of the replay", size: " in size", window: "" };
  const FROM = { time: "", size: "", window: "windows " };
  const chosen = { time: null, size: null, window: null, stream: null, told: null };
  const STEPS = 20;
  const charts = [];
  const bar = document.getElementById("chosen");
  const status = document.getElementById("status");
  let waiting = false, chooser = null;

  function signals() {
    const now = { stream: chosen.stream, told: chosen.told };
    Object.keys(AXES).forEach(function (axis) {
      now[axis + "_lo"] = chosen[axis] ? chosen[axis][0] : null;
      now[axis + "_hi"] = chosen[axis] ? chosen[axis][1] : null;
    });
    return now;
  }

  // Marks learn their cause, so that the style sheet dims the others under the pointer.
  function tag(host) {
    host.querySelectorAll(".role-mark").forEach(function (group) {
      const named = /(?:^| )cause_(\w+?)_marks/.exec(group.getAttribute("class"));
      if (named) group.dataset.cause = named[1].replace(/_/g, "-");
      Array.from(group.children).forEach(function (mark) {
        const datum = mark.__data__ && mark.__data__.datum;
        if (datum && datum.cause) mark.dataset.cause = datum.cause;
      });
    });
  }

  function place(chart) {
    const part = chosen[chart.axis];
    if (!chart.brush) return;
    chart.brush.hidden = !part;
    if (!part) return;
    const scale = chart.view.scale("x");
    const ends = part.map((value) => scale(value));
    const [lo, hi] = scale.range();
    const left = Math.max(Math.min(ends[0], hi), lo);
    const padding = chart.view.padding();
    chart.brush.style.top = padding.top + "px";
    chart.brush.style.bottom = padding.bottom + "px";
    chart.brush.style.left = padding.left + left + "px";
    chart.brush.style.width = Math.max(Math.min(ends[1], hi) - left, 1) + "px";
  }

  function said() {
    const parts = Object.keys(AXES).filter((axis) => chosen[axis]).map(function (axis) {
      const whole = axis === "time" ? (v) => Math.round(v * 10) / 10 : null;
      const [lo, hi] = chosen[axis];
      return FROM[axis] + (whole ? whole(lo) : Math.ceil(lo)) + " to " + (whole ? whole(hi) : Math.floor(hi)) + AXES[axis];
    });
    return parts.concat(chosen.stream === null ? [] : [chosen.stream]).join(" · ");
  }

  function follow(chart) {
    const now = signals();
    Object.keys(now).forEach((name) => chart.view.signal(name, now[name]));
    place(chart);
    return chart.view.runAsync().then(() => tag(chart.host));
  }

  function update() {
    const text = said();
    bar.hidden = !text;
    bar.querySelector("span").textContent = text;
    const told = text ? "Chosen: " + text : "All of it is shown";
    if (text || status.textContent) status.textContent = told;
    document.querySelectorAll("select[data-field]").forEach(function (select) {
      const part = chosen[select.dataset.field];
      const value = Array.isArray(part) ? part.join(",") : part || "";
      select.value = value;
      if (select.selectedIndex < 0) select.value = "";
    });
    return Promise.all(charts.map(follow));
  }

  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(function () {
      waiting = false;
      update();
    });
  }

  // The first chart of each stack takes the arrow keys for all of them: one stop for the keyboard, not one a chart.
  function steerable(chart) {
    const stack = chart.host.closest(".block");
    if (stack.querySelector(".chart[tabindex]")) return;
    chart.host.tabIndex = 0;
    chart.host.setAttribute("role", "group");
    chart.host.setAttribute("aria-describedby", "steering");
    chart.host.addEventListener("keydown", function (event) {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      chooser = chart.host;
      chosen[chart.axis] = moved(chart, way, event.shiftKey);
      soon();
    });
  }

  // The part a step further on its axis, or with its far end there; the first or the last step where none is chosen.
  function moved(chart, way, stretched) {
    const [first, last] = chart.view.scale("x").domain();
    const step = Math.max((last - first) / STEPS, chart.axis === "window" ? 1 : 0);
    const part = chosen[chart.axis];
    if (!part) return way > 0 ? [first, first + step] : [last - step, last];
    if (stretched) return [part[0], Math.min(Math.max(part[1] + way * step, part[0] + step), last)];
    const by = Math.min(Math.max(way * step, first - part[0]), last - part[1]);
    return part.map((end) => end + by);
  }

  function brushable(chart) {
    chart.brush = document.createElement("div");
    chart.brush.className = "brush";
    chart.brush.hidden = true;
    chart.host.append(chart.brush);
    const at = function (event) {
      const [lo, hi] = chart.view.scale("x").range();
      const x = event.clientX - chart.host.getBoundingClientRect().left - chart.view.padding().left;
      return Math.min(Math.max(x, lo), hi);
    };
    let from = null, drawn = false;
    chart.host.addEventListener("pointerdown", function (event) {
      if (event.button === 0) [from, drawn] = [at(event), false];
    });
    chart.host.addEventListener("pointermove", function (event) {
      if (from === null || (!drawn && Math.abs(at(event) - from) < 4)) return;
      if (!drawn) chart.host.setPointerCapture(event.pointerId);
      drawn = true;
      const ends = [from, at(event)].sort((a, b) => a - b);
      chosen[chart.axis] = ends.map((x) => chart.view.scale("x").invert(x));
      soon();
    });
    chart.host.addEventListener("pointerup", function () {
      from = null;
    });
    chart.host.addEventListener("click", function (event) {
      if (drawn || event.target.closest("[data-cause]") || !chosen[chart.axis]) return;
      chosen[chart.axis] = null;
      soon();
    });
  }

  function tell(key) {
    document.querySelectorAll(".told").forEach((told) => (told.hidden = told.id !== "told-" + key));
    chosen.told = Number(key);
    update();
  }

  function add(axis, host, view) {
    const chart = { axis: axis, host: host, view: view };
    charts.push(chart);
    if (axis) brushable(chart);
    if (axis) steerable(chart);
    view.addEventListener("click", function (event, item) {
      const told = item && item.datum ? item.datum.told : null;
      const list = document.getElementById("told");
      if (told === null || told === undefined || !list) return;
      list.value = String(told);
      tell(told);
      list.scrollIntoView({ block: "nearest" });
    });
    tag(host);
    return chart;
  }

  // The button goes away with what was chosen, so the keyboard goes back to where that was done.
  function clear() {
    ["time", "size", "window", "stream"].forEach((name) => (chosen[name] = null));
    if (chooser && bar.contains(document.activeElement)) chooser.focus({ preventScroll: true });
    update();
  }

  document.querySelectorAll("select[data-field]").forEach(function (select) {
    select.addEventListener("change", function () {
      const ends = select.value.split(",").map(Number);
      chooser = select;
      chosen[select.dataset.field] = !select.value ? null : select.dataset.field === "stream" ? select.value : ends;
      update();
    });
  });
  const list = document.getElementById("told");
  if (list) list.addEventListener("change", () => tell(list.value));
  bar.querySelector("button").addEventListener("click", clear);
  addEventListener("keydown", (event) => event.key === "Escape" && clear());
  return { add: add, placed: (chart) => (place(chart), tag(chart.host)) };
})();
