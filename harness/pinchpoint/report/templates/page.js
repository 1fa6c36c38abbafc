"use strict";
// Each chart is on the page as a picture already. Where scripts run, it is drawn again at the width of the
// window and answers to the pointer; where that fails, the picture stays. Paper gets the picture, whatever
// the window's width.
(() => {
  const AXIS = 62 + 34;
  const SMALL_AXIS = 46 + 22;
  const pictures = new Map();  // each figure's: still, live

  // A chart's specification: gzip, base64, JSON.
  const unpacked = async (figure) => {
    const bytes = Uint8Array.from(atob(packed(figure).textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const packed = (figure) => figure.querySelector("script[type='application/gzip']");

  const sized = (spec, room, small) => {
    const width = Math.max(Math.floor(room - (small ? SMALL_AXIS : AXIS)), 160);
    (spec.vconcat || [spec]).forEach((panel) => { panel.width = width; });
    return spec;
  };

  const draw = async (figure) => {
    const room = figure.clientWidth;
    const spec = await unpacked(figure);
    const place = document.createElement("div");
    place.className = "live";
    await vegaEmbed(place, sized(spec, room, figure.classList.contains("small")), { actions: false, renderer: "svg", ast: true });
    const { still, live } = pictures.get(figure) || { still: figure.querySelector(".still") };
    (live || still).replaceWith(place);
    pictures.set(figure, { still, live: place });
    figure.dataset.drawn = String(room);
  };

  // The figures behind a chart as a table, for who cannot see it or wants to copy them; made when it is opened.
  const figures = (spec) => {
    const sets = Object.values(spec.datasets || {}).filter((rows) => rows.length);
    const timed = sets.find((rows) => "time" in rows[0]);
    if (timed) {
      const lines = sets.find((rows) => "t" in rows[0] && "name" in rows[0]) || [];
      const names = [...new Set(lines.map((row) => row.name))];
      return [["time", ...names], timed.map((row) => [row.time, ...names.map((_, at) => row[`s${at}`] ?? "not measured")])];
    }
    const longest = sets.reduce((one, other) => (other.length > one.length ? other : one), [{}]);
    const same = sets.filter((rows) => Object.keys(rows[0]).join() === Object.keys(longest[0]).join()).flat();
    const keys = Object.keys(longest[0]).filter((key) => typeof longest[0][key] === "string");
    return [keys, same.map((row) => keys.map((key) => row[key] ?? ""))];
  };

  const behind = (figure) => {
    const details = document.createElement("details");
    details.className = "data";
    details.appendChild(document.createElement("summary")).textContent = "Figures";
    details.addEventListener("toggle", async () => {
      const [heads, rows] = figures(await unpacked(figure));
      if (details.querySelector("table")) { return; }
      const place = details.appendChild(document.createElement("div"));
      place.className = "scroll";
      place.tabIndex = 0;
      const table = place.appendChild(document.createElement("table"));
      const head = table.createTHead().insertRow();
      heads.forEach((text) => { const cell = head.appendChild(document.createElement("th")); cell.scope = "col"; cell.textContent = text; });
      const body = table.createTBody();
      rows.forEach((cells) => { const row = body.insertRow(); cells.forEach((text) => { row.insertCell().textContent = text; }); });
    });
    figure.appendChild(details);
  };

  const drawAll = async () => {
    for (const figure of document.querySelectorAll("figure.chart")) {
      if (figure.dataset.drawn !== String(figure.clientWidth)) {
        try { await draw(figure); } catch (error) { console.warn(`The picture stays: ${error}`); }
        await new Promise((done) => { setTimeout(done); });  // the page answers in between
      }
    }
    document.documentElement.dataset.charts = "drawn";
  };

  // A time in the run's zone, or UTC, has the reader's local time in its tooltip.
  const STAMP = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC([+-]\d\d:\d\d)?/;
  const local = () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (STAMP.test(node.data) && !node.parentElement.closest("script, style, pre, svg, time")) { found.push(node); }
    }
    found.forEach((node) => {
      let rest = node;
      for (let match = STAMP.exec(rest.data); match; match = STAMP.exec(rest.data)) {
        const stamp = rest.splitText(match.index);
        rest = stamp.splitText(match[0].length);
        const at = new Date(`${match[1]}T${match[2]}${match[3] || "Z"}`);
        if (Number.isNaN(at.getTime())) { continue; }
        const time = document.createElement("time");
        time.dateTime = at.toISOString();
        time.title = `Your time: ${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })}`;
        stamp.replaceWith(time);
        time.append(stamp);
      }
    });
  };

  window.addEventListener("beforeprint", () => pictures.forEach(({ still, live }) => live.replaceWith(still)));
  window.addEventListener("afterprint", () => pictures.forEach(({ still, live }) => still.replaceWith(live)));

  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 250);
  });
  for (const figure of document.querySelectorAll("figure.chart")) {
    if (packed(figure)) { behind(figure); }
  }
  local();
  window.addEventListener("load", () => { setTimeout(drawAll); });  // the pictures are there before
})();
