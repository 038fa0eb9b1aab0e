// What the page does beyond links and forms, all of it dispensable: focus after content came in place, words for an
// answer that is no page, what was typed after a reload, and charts of which Tab finds one point and arrows the others.
(() => {
  "use strict";

  const notice = () => document.getElementById("notice");

  // An answer that is no page (a problem of the edge, say) must not be swapped in.
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

  // Whoever goes back from a plan finds the form with its job, not an empty one.
  document.addEventListener("htmx:before:history:update", (event) => {
    const plan = /^\/plans\/([\w-]+)$/.exec(event.detail.history.path);
    if (plan && location.pathname === "/") history.replaceState(history.state, "", `/?plan=${plan[1]}`);
  });

  // Where the reader goes on: at the errors if there are any, else at the heading.
  // What says that it is quiet (a filter, progress) leaves the reader where they are.
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.sourceElement?.closest("[data-quiet]")) return;
    const goOn = document.querySelector("main [data-focus]") || document.querySelector("main h1");
    if (!goOn) return;
    if (!goOn.hasAttribute("tabindex")) goOn.setAttribute("tabindex", "-1");
    goOn.focus();
    goOn.scrollIntoView({ block: "start" });
  });

  // Loading a page again keeps what was typed in it, also where an answer with errors came in place.
  const place = () => `typed ${location.pathname}${location.search}`;
  const fields = () => [...document.querySelectorAll("main form[method=post] :is(input, select, textarea)[name]")];
  const kept = (field) => !["hidden", "file", "password"].includes(field.type);
  const state = (field) => (field.type === "checkbox" ? field.checked : field.value);

  // A browser that lets sites keep nothing throws where it is asked for the place: then what was typed is lost, no more.
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
  if (performance.getEntriesByType("navigation")[0]?.type === "reload") fillIn();

  // A form that is on its way is not sent twice; who comes back to it may send it again.
  const buttons = (form, off) => form.querySelectorAll("button").forEach((each) => (each.disabled = off));
  document.addEventListener("submit", (event) => {
    // Not .method, which is a field where the form has one of that name.
    if (event.target.getAttribute("method") === "post" && !event.target.hasAttribute("hx-post")) {
      setTimeout(() => buttons(event.target, true));
    }
  });
  addEventListener("pageshow", () => document.querySelectorAll("form").forEach((form) => buttons(form, false)));

  // A chart is one stop of Tab, and the arrow keys go from point to point, as in a toolbar of the ARIA patterns.
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const points = (chart) => [...chart.querySelectorAll("a, [tabindex]")];
  const stopAt = (chart, point) => points(chart).forEach((each) => each.setAttribute("tabindex", each === point ? 0 : -1));

  const rove = () => {
    document.querySelectorAll("figure.chart > svg:not([role=toolbar])").forEach((chart) => {
      const all = points(chart);
      if (all.length < 3) return;
      chart.setAttribute("role", "toolbar");
      chart.parentElement.querySelector(".keys")?.removeAttribute("hidden");
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
  rove();
})();
