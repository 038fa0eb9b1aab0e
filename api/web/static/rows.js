// A long table that scrolls instead of being turned over: pages of rows are fetched as they come near, and let go once
// they are far. Without scripts there are links to the next and the previous page.
(() => {
  "use strict";

  // Rows this near to what is seen, in pixels, are fetched; pages passed within WAIT milliseconds are not.
  const NEAR = 600;
  const WAIT = 40;
  const phone = matchMedia("(max-width: 40rem)");
  let leave = () => {};

  const build = (table) => {
    const { rows, first, total, page } = Object.fromEntries(
      Object.entries(table.dataset).map(([name, value]) => [name, name === "rows" ? value : Number(value)]),
    );
    const box = table.closest(".scroll");
    const given = [...table.tBodies];
    const begun = given.reduce((sum, body) => sum + body.rows.length, 0);
    const at = (first - 1) / page;
    if (total <= begun || !Number.isInteger(at)) return;
    box.closest("section").querySelectorAll(".paged").forEach((each) => (each.hidden = true));
    const columns = table.tHead.rows[0].cells.length;
    const size = (number) => Math.min(page, total - number * page);

    // The height of a row, for the room of pages that are not here.
    const measure = () => table.style.setProperty("--row", `${given[0].offsetHeight / given[0].rows.length}px`);
    const empty = (body, number, words = "") => {
      const cell = document.createElement("td");
      cell.colSpan = columns;
      cell.className = "room";
      cell.style.height = `calc(var(--row) * ${size(number)})`;
      cell.append(words);
      const row = document.createElement("tr");
      row.append(cell);
      body.replaceChildren(row);
    };

    const bodies = Array.from({ length: Math.ceil(total / page) }, (_, number) => {
      // A part at the end of what was given that is not whole is fetched again.
      if (number >= at && given[number - at]?.rows.length === size(number)) return given[number - at];
      const body = document.createElement("tbody");
      empty(body, number);
      return body;
    });
    measure();
    const asked = new Map();
    const numbers = new Map(bodies.map((body, number) => [body, number]));
    const here = new Set(given);

    const fetched = async (body, number) => {
      const stop = new AbortController();
      asked.set(body, stop);
      await new Promise((done) => setTimeout(done, WAIT));
      if (stop.signal.aborted) return;
      table.setAttribute("aria-busy", "true");
      try {
        const response = await fetch(`${rows}&start=${number * page}`, { signal: stop.signal });
        if (!response.ok || response.redirected) throw new Error(`the service answered ${response.status}`);
        const text = await response.text();
        if (stop.signal.aborted) return;
        body.innerHTML = text;
        here.add(body);
      } catch (error) {
        if (stop.signal.aborted) return;
        empty(body, number, "These rows could not be loaded. ");
        // Once it is far, it is fetched again as any other.
        here.add(body);
        const again = document.createElement("button");
        again.type = "button";
        again.append("Try again");
        again.addEventListener("click", () => fetched(body, number));
        body.rows[0].cells[0].append(again);
      } finally {
        if (asked.get(body) === stop) asked.delete(body);
        if (!asked.size) table.removeAttribute("aria-busy");
      }
    };
    const near = (body, number) => {
      if (!here.has(body) && !asked.has(body)) fetched(body, number);
    };
    const far = (body, number) => {
      asked.get(body)?.abort();
      asked.delete(body);
      // What has the focus stays, and so does the page that came with the address.
      if (body === given[0] || !here.has(body) || body.contains(document.activeElement)) return;
      here.delete(body);
      empty(body, number);
    };

    let watching = null;
    const watch = () => {
      watching?.disconnect();
      measure();
      const root = phone.matches ? null : box;
      watching = new IntersectionObserver(
        (entries) => {
          // A page that came and left meanwhile has two entries, of which the later counts. Leaving first, so that no
          // more than what is near is ever laid out.
          const latest = [...new Map(entries.map((entry) => [entry.target, entry])).values()];
          latest.sort((one, other) => one.isIntersecting - other.isIntersecting).forEach((entry) => {
            (entry.isIntersecting ? near : far)(entry.target, numbers.get(entry.target));
          });
        },
        { root, rootMargin: `${NEAR}px 0px` },
      );
      bodies.forEach((body) => watching.observe(body));
    };
    given.forEach((body) => bodies.includes(body) || body.remove());
    table.append(...bodies);
    if (at) box.scrollTop = given[0].offsetTop - table.tHead.offsetHeight;
    watch();
    phone.addEventListener("change", watch);
    leave = () => {
      watching.disconnect();
      asked.forEach((stop) => stop.abort());
      phone.removeEventListener("change", watch);
    };
  };

  const all = () => {
    const table = document.querySelector("table[data-rows]:not([data-ready])");
    if (!table) return;
    leave();
    table.dataset.ready = "";
    build(table);
  };
  document.addEventListener("htmx:after:swap", all);
  all();
})();
