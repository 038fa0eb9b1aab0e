// Charts that answer to the hand: values under the pointer, a legend that filters, downloads, and a deadline to drag.
// Without scripts a chart is a drawing with links and a table.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const element = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const shown = (figure) => [...figure.querySelectorAll(":scope > svg")].find((svg) => svg.getBoundingClientRect().width);
  const marks = (svg) => [...svg.querySelectorAll("a, .point")].filter((mark) => !mark.classList.contains("off"));
  const centre = (mark) => {
    const target = mark.querySelector(".target");
    return target && [Number(target.getAttribute("cx")), Number(target.getAttribute("cy"))];
  };
  const inDrawing = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };

  // The horizontal scale that the drawing states: values at pixels and pixels of values.
  const scaleOf = (svg) => {
    const [kind, ...numbers] = svg.dataset.x.split(" ");
    const [low, high, start, end] = numbers.map(Number);
    const [to, from] = kind === "log" ? [Math.log, Math.exp] : [(x) => x, (x) => x];
    return {
      at: (value) => start + ((to(value) - to(low)) / (to(high) - to(low))) * (end - start),
      value: (share) => from(to(low) + share * (to(high) - to(low))),
      share: (value) => (to(value) - to(low)) / (to(high) - to(low)),
      start,
      end,
    };
  };

  // The values of the nearest mark beside a crosshair.
  const crosshair = (figure) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("aria-hidden", "true");
    tip.hidden = true;
    figure.append(tip);
    const clear = () => {
      tip.hidden = true;
      figure.querySelectorAll(".crosshair").forEach((line) => line.remove());
    };
    const point = (svg, mark) => {
      const at = centre(mark);
      clear();
      if (!at) return;
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
      svg.prepend(element("line", { class: "crosshair", x1: at[0], x2: at[0], y1: 0, y2: height - 44 }));
      tip.textContent = mark.getAttribute("aria-label");
      tip.hidden = false;
      const box = svg.getBoundingClientRect();
      const frame = figure.getBoundingClientRect();
      const left = box.left - frame.left + (at[0] / width) * box.width;
      tip.style.left = `${Math.max(0, Math.min(left + 12, frame.width - tip.offsetWidth))}px`;
      tip.style.top = `${box.top - frame.top + (at[1] / height) * box.height - tip.offsetHeight - 14}px`;
    };
    const nearest = (event) => {
      const svg = event.target.closest?.("svg");
      if (!svg || svg.parentElement !== figure) return;
      const [x, y] = inDrawing(svg, event);
      const away = (mark) => {
        const at = centre(mark);
        return at ? Math.abs(at[0] - x) + Math.abs(at[1] - y) / 4 : Infinity;
      };
      const best = marks(svg).reduce((one, other) => (one && away(one) <= away(other) ? one : other), null);
      if (best) point(svg, best);
    };
    figure.addEventListener("pointermove", nearest);
    figure.addEventListener("pointerdown", nearest);
    figure.addEventListener("pointerleave", clear);
    figure.addEventListener("focusin", (event) => {
      const mark = event.target.closest?.("svg a, svg .point");
      if (mark) point(mark.closest("svg"), mark);
    });
    figure.addEventListener("focusout", clear);
    figure.addEventListener("keydown", (event) => event.key === "Escape" && clear());
  };

  // Entries of the legend hide and show their marks.
  const filters = (figure) => {
    const off = new Set();
    figure.querySelectorAll(".legend [data-filters]").forEach((entry) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const tag = entry.dataset.filters;
        const isOn = !off.delete(tag) && off.add(tag) ? false : true;
        button.setAttribute("aria-pressed", isOn);
        figure.querySelectorAll("[data-tags]").forEach((mark) => {
          mark.classList.toggle("off", mark.dataset.tags.split(" ").some((each) => off.has(each)));
        });
      });
    });
  };

  // The drawing by itself, with the styles that the page gives it.
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "display"];
  const alone = (svg) => {
    const copy = svg.cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const originals = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((each, number) => {
      const style = getComputedStyle(originals[number]);
      STYLES.forEach((name) => each.setAttribute(name, style.getPropertyValue(name)));
    });
    copy.setAttribute("xmlns", SVG);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const ground = getComputedStyle(document.documentElement).backgroundColor;
    copy.prepend(element("rect", { width, height, fill: ground }));
    return [new XMLSerializer().serializeToString(copy), width, height];
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const pictures = (figure, files, name) => {
    const button = (label, action) => {
      const made = document.createElement("button");
      made.type = "button";
      made.append(label);
      made.addEventListener("click", () => action(...alone(shown(figure))));
      files.append(" ", made);
    };
    button("SVG", (text) => save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`));
    button("PNG", (text, width, height) => {
      const picture = new Image();
      picture.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [2 * width, 2 * height];
        canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${name}.png`));
      });
      picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  };

  const words = (hours) => {
    const minutes = Math.round(hours * 60);
    if (minutes < 60) return `${minutes} min`;
    if (hours < 48) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${Math.floor(hours / 24)} d ${Math.round(hours % 24)} h`;
  };

  // A deadline that is dragged, by its line in the drawing or by the slider below: the card follows while it moves, and
  // the whole plan when it is let go or Enter is pressed.
  const deadline = (box) => {
    const figure = box.querySelector("figure");
    const slider = box.querySelector("input[type=range]");
    if (!figure || !slider) return;
    const output = box.querySelector("output");
    const hours = () => {
      const value = scaleOf(shown(figure)).value(slider.value / 1000);
      return Number(value.toPrecision(4));
    };
    const draw = () => {
      figure.querySelectorAll(":scope > svg").forEach((svg) => {
        const x = scaleOf(svg).at(hours());
        svg.querySelectorAll(".rule").forEach((rule) => {
          rule.setAttribute("x1", x);
          rule.setAttribute("x2", x);
        });
        svg.querySelector(".grip")?.setAttribute("transform", `translate(${x} 12)`);
      });
      slider.setAttribute("aria-valuetext", words(hours()));
      output.textContent = words(hours());
    };

    let asked = null;
    let waiting = 0;
    const follow = async () => {
      asked?.abort();
      asked = new AbortController();
      const url = `${box.dataset.live}?deadline_hours=${hours()}`;
      try {
        const response = await fetch(url, { signal: asked.signal });
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const card = page.getElementById("answer");
        const current = document.getElementById("answer");
        if (!card || !current) return;
        card.classList.add("preview");
        current.replaceWith(card);
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
    };
    const moved = () => {
      draw();
      clearTimeout(waiting);
      waiting = setTimeout(follow, 30);
    };
    const commit = async () => {
      clearTimeout(waiting);
      asked?.abort();
      box.setAttribute("aria-busy", "true");
      const response = await fetch(`${box.dataset.commit}?deadline_hours=${hours()}`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const main = page.getElementById("main");
      if (!main) return location.assign(response.url);
      const hadFocus = document.activeElement === slider;
      document.getElementById("main").replaceWith(main);
      document.title = page.title;
      history.pushState({ dragged: true }, "", response.url);
      document.dispatchEvent(new Event("page:replaced"));
      if (hadFocus) document.getElementById("drag")?.focus({ preventScroll: true });
    };

    const start = Number(box.dataset.deadline) || 0;
    const scale = scaleOf(shown(figure));
    slider.value = start ? Math.round(1000 * Math.min(1, Math.max(0, scale.share(start)))) : 1000;
    slider.addEventListener("input", moved);
    slider.addEventListener("keydown", (event) => event.key === "Enter" && commit());
    slider.addEventListener("pointerup", commit);
    box.querySelector(".drag button").addEventListener("click", commit);

    figure.querySelectorAll(":scope > svg").forEach((svg) => {
      const [, , , height] = svg.getAttribute("viewBox").split(" ").map(Number);
      if (!svg.querySelector(".rule")) svg.append(element("line", { class: "rule", y1: 12, y2: height - 44 }));
      const grip = element("g", { class: "grip", "aria-hidden": "true" });
      grip.append(element("rect", { x: -12, y: -12, width: 24, height: height - 44, class: "target" }));
      grip.append(element("path", { d: "M-6-9H6V1L0 8L-6 1Z" }));
      svg.append(grip);
      grip.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        event.stopPropagation();
        grip.setPointerCapture(event.pointerId);
      });
      grip.addEventListener("pointermove", (event) => {
        if (!grip.hasPointerCapture(event.pointerId)) return;
        event.stopPropagation();
        const { start: left, end: right } = scaleOf(svg);
        const share = (inDrawing(svg, event)[0] - left) / (right - left);
        slider.value = Math.round(1000 * Math.min(1, Math.max(0, share)));
        moved();
      });
      grip.addEventListener("pointerup", (event) => {
        if (!grip.hasPointerCapture(event.pointerId)) return;
        grip.releasePointerCapture(event.pointerId);
        commit();
      });
    });
    box.querySelector(".drag").hidden = false;
    if (start) {
      output.textContent = words(start);
      slider.setAttribute("aria-valuetext", words(start));
    } else {
      output.textContent = "none";
      slider.setAttribute("aria-valuetext", "none");
    }
    figure.querySelectorAll(":scope > svg").forEach((svg) => {
      const x = start ? scaleOf(svg).at(start) : scaleOf(svg).end;
      svg.querySelector(".grip").setAttribute("transform", `translate(${x} 12)`);
      if (!start) ["x1", "x2"].forEach((name) => svg.querySelector(".rule").setAttribute(name, x));
    });
  };

  addEventListener("popstate", () => {
    if (document.querySelector("[data-live]")) location.reload();
  });

  const all = () => {
    document.querySelectorAll("figure.chart:not([data-ready])").forEach((figure) => {
      if (!figure.querySelector("svg[data-x]")) return;
      figure.dataset.ready = "";
      crosshair(figure);
      filters(figure);
    });
    document.querySelectorAll("[data-live]:not([data-ready])").forEach((box) => {
      box.dataset.ready = "";
      pictures(box.querySelector("figure"), box.querySelector(".files"), "cost-against-time");
      deadline(box);
    });
  };
  document.addEventListener("htmx:after:swap", all);
  document.addEventListener("page:replaced", all);
  all();
})();
