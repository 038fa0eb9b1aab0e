// Lines of a chart that are dragged: the deadline across and the budget up, each by its grip in the drawing or by the
// slider below. The card follows while a line moves, and the whole plan when it is let go or Enter is pressed. Loaded
// after chart.js, whose charts it extends.
(() => {
  "use strict";

  const { element, shown, inDrawing, scaleOf } = window.gpuplan.chart;

  // So long without a move, and the line rests.
  const REST_MS = 30;

  const hoursInWords = (hours) => {
    const minutes = Math.round(hours * 60);
    if (minutes < 60) return `${minutes} min`;
    if (hours < 48) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${Math.floor(hours / 24)} d ${Math.round(hours % 24)} h`;
  };
  const usdInWords = (usd) => `$${usd.toLocaleString("en-US", { maximumFractionDigits: usd < 100 ? 2 : 0 })}`;

  // What a line stands for: the axis that it moves along, its parameter of the address, its words, and its grip.
  const LINES = {
    deadline: { axis: "x", parameter: "deadline_hours", inWords: hoursInWords, path: "M-6-9H6V1L0 8L-6 1Z" },
    budget: { axis: "y", parameter: "budget_usd", inWords: usdInWords, path: "M9-6V6H-1L-8 0L-1-6Z" },
  };

  // The plan of a box: asked for again while a line moves (only the newest answer counts), and committed at the end.
  const follower = (box) => {
    let asked = null;
    let waiting = 0;
    let moved = -Infinity;
    const page = async (url, signal) => {
      const response = await fetch(url, { signal });
      return [new DOMParser().parseFromString(await response.text(), "text/html"), response.url];
    };
    const follow = async (change) => {
      asked?.abort();
      asked = new AbortController();
      try {
        const [answer] = await page(`${box.dataset.live}?${change}`, asked.signal);
        const card = answer.getElementById("answer");
        const current = document.getElementById("answer");
        if (!card || !current) return;
        card.classList.add("preview");
        current.replaceWith(card);
      } catch (error) {
        if (error.name !== "AbortError") failed();
      }
    };
    const failed = () => {
      box.removeAttribute("aria-busy");
      document.getElementById("notice").textContent = "The service does not answer; the plan shown may not fit the line.";
    };
    const stop = () => {
      clearTimeout(waiting);
      asked?.abort();
    };
    return {
      // The first move is asked for at once, those that follow it closely when the line rests.
      move: (change) => {
        clearTimeout(waiting);
        if (performance.now() - moved > REST_MS) follow(change);
        else waiting = setTimeout(follow, REST_MS, change);
        moved = performance.now();
      },
      commit: async (change, focus) => {
        stop();
        box.setAttribute("aria-busy", "true");
        try {
          const [answer, url] = await page(`${box.dataset.commit}?${change}`);
          const main = answer.getElementById("main");
          if (!main) return location.assign(url);
          document.getElementById("main").replaceWith(main);
          document.title = answer.title;
          history.pushState({ dragged: true }, "", url);
          document.dispatchEvent(new Event("page:replaced"));
          if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
        } catch {
          failed();
        }
      },
    };
  };

  const draggable = (box, row, plan) => {
    const line = LINES[row.dataset.line];
    const figure = box.querySelector("figure");
    const slider = row.querySelector("input[type=range]");
    const output = row.querySelector("output");
    const drawings = [...figure.querySelectorAll(":scope > svg")];
    const scale = (svg) => scaleOf(svg, line.axis);
    const value = () => {
      const exact = scale(shown(figure)).value(slider.value / 1000);
      return Math.max(0.01, Number(exact.toPrecision(4)));
    };
    const change = () => `${line.parameter}=${value()}`;
    const place = (svg, at) => {
      const rule = svg.querySelector(`.rule.${row.dataset.line}`);
      const ends = line.axis === "x" ? ["x1", "x2"] : ["y1", "y2"];
      ends.forEach((name) => rule.setAttribute(name, at));
      rule.classList.remove("off");
      const across = line.axis === "x" ? [at, 12] : [scaleOf(svg, "x").end, at];
      svg.querySelector(`.grip.${row.dataset.line}`).setAttribute("transform", `translate(${across.join(" ")})`);
    };
    const speak = (words) => {
      slider.setAttribute("aria-valuetext", words);
      output.textContent = words;
    };
    const moved = () => {
      drawings.forEach((svg) => place(svg, scale(svg).at(value())));
      speak(line.inWords(value()));
      plan.move(change());
    };
    const commit = () => plan.commit(change(), document.activeElement === slider ? slider.id : "");

    const stated = Number(row.dataset.value) || 0;
    const share = stated ? Math.min(1, Math.max(0, scale(shown(figure)).share(stated))) : 1;
    slider.value = Math.round(1000 * share);
    speak(stated ? line.inWords(stated) : "none");
    slider.addEventListener("input", moved);
    slider.addEventListener("keydown", (event) => event.key === "Enter" && commit());
    slider.addEventListener("pointerup", commit);
    row.querySelector("button").addEventListener("click", commit);

    drawings.forEach((svg) => {
      const [along, other] = line.axis === "x" ? [scaleOf(svg, "x"), scaleOf(svg, "y")] : [scaleOf(svg, "y"), scaleOf(svg, "x")];
      if (!svg.querySelector(`.rule.${row.dataset.line}`)) {
        const ends = line.axis === "x" ? { y1: other.end, y2: other.start } : { x1: other.start, x2: other.end };
        svg.append(element("line", { class: `rule ${row.dataset.line}`, ...ends }));
      }
      const grip = element("g", { class: `grip ${row.dataset.line}`, "aria-hidden": "true" });
      grip.append(element("rect", { x: -16, y: -16, width: 32, height: 32, class: "target" }));
      grip.append(element("path", { d: line.path }));
      svg.append(grip);
      place(svg, stated && share < 1 ? along.at(stated) : along.start + share * (along.end - along.start));
      // What is stated beyond the drawing has a grip at its edge, and no line at a value that it is not.
      svg.querySelector(`.rule.${row.dataset.line}`).classList.toggle("off", stated > 0 && along.share(stated) > 1);
      // Browsers ignore touch-action on parts of a drawing, and would scroll the page instead.
      grip.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
      grip.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        event.stopPropagation();
        grip.setPointerCapture(event.pointerId);
      });
      grip.addEventListener("pointermove", (event) => {
        if (!grip.hasPointerCapture(event.pointerId)) return;
        event.stopPropagation();
        const { start, end } = scale(svg);
        const at = inDrawing(svg, event)[line.axis === "x" ? 0 : 1];
        slider.value = Math.round(1000 * Math.min(1, Math.max(0, (at - start) / (end - start))));
        moved();
      });
      grip.addEventListener("pointerup", (event) => {
        if (!grip.hasPointerCapture(event.pointerId)) return;
        grip.releasePointerCapture(event.pointerId);
        commit();
      });
    });
    row.hidden = false;
  };

  addEventListener("popstate", () => {
    if (document.querySelector("[data-live]")) location.reload();
  });

  const all = () => {
    document.querySelectorAll("[data-live]:not([data-dragged])").forEach((box) => {
      box.dataset.dragged = "";
      const plan = follower(box);
      box.querySelectorAll(".drag").forEach((row) => draggable(box, row, plan));
    });
  };
  document.addEventListener("htmx:after:swap", all);
  document.addEventListener("page:replaced", all);
  all();
})();
