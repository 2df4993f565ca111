"use strict";
(function () {
  const root = document.documentElement;
  const page = JSON.parse(document.getElementById("charts").textContent);
  const offline = () => Promise.reject(new Error("this page loads nothing"));
  const loader = { load: offline, sanitize: offline, http: offline, file: offline };
  const options = {
    mode: "vega-lite", ast: true, actions: false, renderer: "svg", tooltip: false,
    defaultStyle: false, hover: false, loader: loader, config: page.config,
  };

  // Rows are carried once each, as columns where all of them have the same fields.
  function unpacked(table) {
    if (Array.isArray(table)) return structuredClone(table);
    const names = Object.keys(table);
    return table[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, table[name][at]])));
  }

  function filled(layer) {
    return Object.assign({}, layer, { data: { values: unpacked(page.rows[layer.data.rows]) } });
  }

  function draw(chart) {
    const host = document.getElementById("chart-" + chart.id);
    const width = () => Math.max(Math.floor(host.clientWidth), 80);
    const spec = Object.assign({}, chart.spec, { width: width(), layer: chart.spec.layer.map(filled) });
    return vegaEmbed(host, spec, options).then(function (drawn) {
      const chart = choice.add(host.dataset.axis || "", host, drawn.view);
      new ResizeObserver(function () {
        drawn.view.width(width()).runAsync().then(() => choice.placed(chart));
      }).observe(host);
    }).catch(function (error) {
      host.className = "failed";
      host.textContent = "This chart could not be drawn: " + error.message;
      console.error(chart.id + ": " + error.message);
    });
  }

  // One after the other, in the order of the page: the first screen is complete first.
  function drawAll() {
    return page.charts.reduce((before, chart) => before.then(() => draw(chart)), Promise.resolve());
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to the " + (isDark() ? "light" : "dark") + " theme");
  }
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();

  // The list of sections follows the reader.
  const links = new Map();
  document.querySelectorAll(".rail li a").forEach((a) => links.set(a.getAttribute("href").slice(1), a));
  const seen = new IntersectionObserver(
    function (entries) {
      const entry = entries.filter((e) => e.isIntersecting).pop();
      if (!entry) return;
      links.forEach((a) => a.removeAttribute("aria-current"));
      const link = links.get(entry.target.id);
      if (link) link.setAttribute("aria-current", "true");
    },
    { rootMargin: "-10% 0px -75% 0px" },
  );
  links.forEach((_, id) => seen.observe(document.getElementById(id)));

  // A table that is wider than its place is scrolled with the arrow keys, so the keyboard must reach it.
  function reachable() {
    document.querySelectorAll(".scroll").forEach(function (place) {
      if (place.scrollWidth > place.clientWidth + 1) place.tabIndex = 0;
      else place.removeAttribute("tabindex");
    });
  }
  addEventListener("resize", reachable);
  document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", reachable));

  const fonts = [400, 500, 600].map((weight) => document.fonts.load(weight + " 12px Inter"));
  Promise.all(fonts).catch(() => null).then(reachable).then(drawAll).then(() => (root.dataset.charts = "drawn"));
})();
