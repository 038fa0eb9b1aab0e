// Panels of a long page as tabs, as in the ARIA tabs pattern. Without scripts they follow each other under headings.
(() => {
  "use strict";

  const show = (box, panel, { focus = false } = {}) => {
    box.querySelectorAll(":scope > .panel").forEach((each) => (each.hidden = each !== panel));
    box.querySelectorAll("[role=tab]").forEach((tab) => {
      const chosen = tab.getAttribute("aria-controls") === panel.id;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) tab.focus();
    });
  };

  // The panel that the address points into, or that holds an error or the sorted table.
  const wanted = (box) => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const inside = (target && target.closest(".panel")) || box.querySelector("[aria-invalid=true]")?.closest(".panel");
    return inside && box.contains(inside) ? inside : null;
  };

  const build = (box) => {
    const panels = [...box.querySelectorAll(":scope > .panel")];
    if (box.querySelector("[role=tablist]") || panels.length < 2) return;
    const list = document.createElement("div");
    list.className = "tablist no-print";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Parts of the answer");
    panels.forEach((panel, number) => {
      panel.id ||= `panel-${number}`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", `tab-${number}`);
      const tab = document.createElement("button");
      tab.type = "button";
      tab.id = `tab-${number}`;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      tab.append(panel.dataset.tab);
      if (panel.dataset.count) {
        const count = document.createElement("span");
        count.className = "badge";
        count.append(panel.dataset.count);
        tab.append(" ", count);
      }
      tab.addEventListener("click", () => show(box, panel));
      list.append(tab);
    });
    list.addEventListener("keydown", (event) => {
      const at = panels.findIndex((panel) => !panel.hidden);
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: panels.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      show(box, panels[(next + panels.length) % panels.length], { focus: true });
    });
    box.prepend(list);
    show(box, wanted(box) || panels[0]);
  };

  const all = () => document.querySelectorAll(".tabs").forEach(build);
  addEventListener("hashchange", () => {
    document.querySelectorAll(".tabs").forEach((box) => {
      const panel = wanted(box);
      if (!panel) return;
      show(box, panel);
      document.getElementById(location.hash.slice(1)).scrollIntoView();
    });
  });
  // A link to the part that the address names already changes nothing in it.
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("a")?.getAttribute("href") === location.hash) dispatchEvent(new Event("hashchange"));
  });
  document.addEventListener("htmx:after:swap", all);
  document.addEventListener("page:replaced", all);
  all();
})();
