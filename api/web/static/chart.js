// Charts that answer to the hand: values under the pointer, a legend that filters, and downloads. drag.js adds lines to drag.
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

  // The scale of an axis (x or y) that the drawing states: values at pixels and pixels of values.
  const scaleOf = (svg, axis) => {
    const [kind, ...numbers] = svg.dataset[axis].split(" ");
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
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family", "font-size", "font-weight", "display"];
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

  window.gpuplan = { chart: { element, shown, inDrawing, scaleOf } };

  const all = () => {
    document.querySelectorAll("figure.chart:not([data-ready])").forEach((figure) => {
      if (!figure.querySelector("svg[data-x]")) return;
      figure.dataset.ready = "";
      crosshair(figure);
      filters(figure);
    });
    document.querySelectorAll("[data-pictures]:not([data-ready])").forEach((box) => {
      box.dataset.ready = "";
      pictures(box.querySelector("figure"), box.querySelector(".files"), box.dataset.pictures);
    });
  };
  document.addEventListener("htmx:after:swap", all);
  document.addEventListener("page:replaced", all);
  all();
})();
