// Optional enhancements of the page: focus after an update, messages for answers that are not pages, form values after
// a reload, and keyboard navigation of charts (Tab for the chart, arrow keys for its points).
(() => {
  "use strict";

  const notice = () => document.getElementById("notice");

  // An answer that is not a page (such as problem details of a middleware) must not be swapped in.
  document.addEventListener("htmx:before:response", (event) => {
    const response = event.detail.ctx.response;
    const type = response.headers.get("content-type") || "";
    notice().textContent = "";
    if (type.startsWith("text/html")) return;
    event.preventDefault();
    response.raw
      .clone()
      .json()
      .then((problem) => problem.detail, () => "")
      .then((detail) => {
        notice().textContent = `The service answered ${response.status}. ${detail || ""}`;
      });
  });

  document.addEventListener("htmx:error", () => {
    notice().textContent = "The service does not answer. Is it running?";
  });

  // Going back from a plan shows the form with its job, not an empty one.
  document.addEventListener("htmx:before:history:update", (event) => {
    const plan = /^\/plans\/([\w-]+)$/.exec(event.detail.history.path);
    if (plan && location.pathname === "/") history.replaceState(history.state, "", `/?plan=${plan[1]}`);
  });

  // Filters and choosers are used several times in a row: the new part has open, and in focus, what the old one had.
  let before = { open: [], focus: "" };
  document.addEventListener("htmx:before:swap", () => {
    const open = [...document.querySelectorAll("[data-quiet] details[id][open]")].map((each) => each.id);
    before = { open, focus: document.activeElement.closest("[data-quiet]") ? document.activeElement.id : "" };
  });
  document.addEventListener("htmx:after:swap", () => {
    before.open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    if (before.focus && document.activeElement === document.body) document.getElementById(before.focus)?.focus();
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    document.querySelectorAll(".menu[open]").forEach((menu) => menu.contains(event.target) || (menu.open = false));
  });

  // Focus the errors if there are any, else the heading. Elements with data-quiet (filters, progress) keep the focus.
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.sourceElement?.closest("[data-quiet]")) return;
    const goOn = document.querySelector("main [data-focus]") || document.querySelector("main h1");
    if (!goOn) return;
    if (!goOn.hasAttribute("tabindex")) goOn.setAttribute("tabindex", "-1");
    goOn.focus();
    goOn.scrollIntoView({ block: "start" });
  });

  // A reload keeps typed values, also after an answer with errors was swapped in.
  const place = () => `typed ${location.pathname}${location.search}`;
  const fields = () => [...document.querySelectorAll("main form[method=post] :is(input, select, textarea)[name]")];
  const kept = (field) => !["hidden", "file", "password"].includes(field.type);
  const state = (field) => (field.type === "checkbox" ? field.checked : field.value);

  // Accessing the storage throws in browsers that block it; then only the typed values are lost.
  const storage = (() => {
    try {
      return window.sessionStorage;
    } catch {
      return null;
    }
  })();

  addEventListener("pagehide", () => {
    const typed = fields().filter(kept).map((field) => [field.name, state(field)]);
    if (typed.length) storage?.setItem(place(), JSON.stringify(typed));
  });

  const fillIn = () => {
    const typed = JSON.parse(storage?.getItem(place()) || "[]");
    const found = fields().filter(kept);
    // Another release may have other fields.
    if (typed.length !== found.length || typed.some(([name], n) => name !== found[n].name)) return;
    found.forEach((field, n) => {
      const was = typed[n][1];
      if (state(field) === was) return;
      if (field.type === "checkbox") field.checked = was;
      else field.value = was;
      field.closest("details")?.setAttribute("open", "");
    });
  };
  // The login page comes between where a session ended while somebody typed.
  const LOGGED_IN = "after login";
  if (location.pathname === "/login") storage?.setItem(LOGGED_IN, "yes");
  else if (storage?.getItem(LOGGED_IN)) {
    storage.removeItem(LOGGED_IN);
    fillIn();
  } else if (performance.getEntriesByType("navigation")[0]?.type === "reload") fillIn();

  // Disable the buttons of a submitted form; enable them when the user comes back to it.
  const buttons = (form, off) => form.querySelectorAll("button").forEach((each) => (each.disabled = off));
  document.addEventListener("submit", (event) => {
    // Not .method, which would be a field of that name.
    if (event.target.getAttribute("method") === "post" && !event.target.hasAttribute("hx-post")) {
      setTimeout(() => buttons(event.target, true));
    }
  });
  addEventListener("pageshow", () => document.querySelectorAll("form").forEach((form) => buttons(form, false)));

  // Links and forms whose answer takes a while say what is being done until it is there. Those of htmx have a .busy.
  let later = 0;
  const said = (words) => {
    clearTimeout(later);
    document.getElementById("doing").textContent = words;
  };
  const doing = (event) => {
    const slow = event.target.closest?.("[data-doing]");
    if (!slow || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.type === "click" && !event.target.closest("a[href]")) return;
    clearTimeout(later);
    later = setTimeout(said, 400, slow.dataset.doing);
  };
  document.addEventListener("click", doing);
  document.addEventListener("submit", doing);
  document.addEventListener("keydown", (event) => event.key === "Escape" && said(""));
  addEventListener("pageshow", () => said(""));

  // A chart is one Tab stop; arrow keys move between points, as in the ARIA toolbar pattern.
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const points = (chart) => [...chart.querySelectorAll(":is(a, [tabindex]):not(.off)")];
  const stopAt = (chart, point) => points(chart).forEach((each) => each.setAttribute("tabindex", each === point ? 0 : -1));

  const rove = () => {
    document.querySelectorAll("figure.chart :is(svg.wide, svg.narrow):not([role=toolbar])").forEach((chart) => {
      const all = points(chart);
      if (all.length < 3) return;
      chart.setAttribute("role", "toolbar");
      chart.closest("figure").querySelector(".keys")?.removeAttribute("hidden");
      stopAt(chart, all.find((each) => each.hasAttribute("aria-current")) || all[0]);
    });
  };
  document.addEventListener("keydown", (event) => {
    const chart = event.target.closest?.("svg[role=toolbar]");
    if (!chart || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = points(chart);
    const at = all.indexOf(event.target.closest("a, [tabindex]"));
    const ends = { Home: 0, End: all.length - 1 };
    const next = ends[event.key] ?? (at + STEPS[event.key] + all.length) % all.length;
    if (at < 0 || Number.isNaN(next)) return;
    event.preventDefault();
    stopAt(chart, all[next]);
    all[next].focus();
  });
  document.addEventListener("focusin", (event) => {
    const chart = event.target.closest?.("svg[role=toolbar]");
    if (chart) stopAt(chart, event.target);
  });
  document.addEventListener("htmx:after:swap", rove);
  document.addEventListener("page:replaced", rove);
  rove();
})();
