"use strict";
// Each chart is on the page as a picture already. Where scripts run, it is drawn again at the width of the
// window and answers to the pointer; where that fails, the picture stays. Paper gets the picture, whatever
// the window's width.
(() => {
  const AXIS = 62 + 34;
  const SMALL_AXIS = 46 + 22;
  const pictures = new Map();  // each figure's: still, live

  const sized = (spec, room, small) => {
    const width = Math.max(Math.floor(room - (small ? SMALL_AXIS : AXIS)), 160);
    (spec.vconcat || [spec]).forEach((panel) => { panel.width = width; });
    return spec;
  };

  const draw = async (figure) => {
    const room = figure.clientWidth;
    const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const place = document.createElement("div");
    place.className = "live";
    await vegaEmbed(place, sized(spec, room, figure.classList.contains("small")), { actions: false, renderer: "svg", ast: true });
    const { still, live } = pictures.get(figure) || { still: figure.querySelector(".still") };
    (live || still).replaceWith(place);
    pictures.set(figure, { still, live: place });
    figure.dataset.drawn = String(room);
  };

  const drawAll = async () => {
    for (const figure of document.querySelectorAll("figure.chart")) {
      if (figure.dataset.drawn !== String(figure.clientWidth)) {
        try { await draw(figure); } catch (error) { console.warn(`The picture stays: ${error}`); }
      }
    }
    document.documentElement.dataset.charts = "drawn";
  };

  window.addEventListener("beforeprint", () => pictures.forEach(({ still, live }) => live.replaceWith(still)));
  window.addEventListener("afterprint", () => pictures.forEach(({ still, live }) => still.replaceWith(live)));

  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 250);
  });
  drawAll();
})();
