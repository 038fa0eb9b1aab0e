// What the page does beyond links and forms, all of it dispensable: focus after content came in place,
// and words for an answer that is no page.
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
})();
