// What the pages do beside links and forms, which work without it: parts that are read when they are opened, the run as
// it goes on, keys, the theme. The server sends HTML that it has escaped; here it is only put where it belongs.
"use strict";

(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

  const parse = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };

  const get = async (url) => {
    const answer = await fetch(url, { headers: { accept: "text/html" } });
    const text = await answer.text();
    if (answer.ok) return parse(text);
    const failure = document.createElement("p");
    failure.className = "failure";
    const page = parse(text);
    failure.textContent = ($(".failure", page) || page).textContent.trim() || `The server answered ${answer.status}.`;
    return failure;
  };

  // -- parts that are read when they are opened ---------------------------------------------------

  const load = async (details) => {
    const place = $(":scope > .loaded", details);
    if (!place || details.dataset.state) return;
    details.dataset.state = "loading";
    place.setAttribute("aria-busy", "true");
    const wait = setTimeout(() => { place.textContent = "Reading\u2026"; }, 200);
    try {
      place.replaceChildren(await get(details.dataset.load));
      details.dataset.state = "loaded";
    } catch (error) {
      place.textContent = "The server does not answer. Open it again to try once more.";
      delete details.dataset.state;
    }
    clearTimeout(wait);
    place.removeAttribute("aria-busy");
  };

  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target.open && event.target.dataset.load) load(event.target);
    },
    true,
  );
  $$("details[open][data-load]").forEach(load);

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.hasAttribute("data-into")) return;
    event.preventDefault();
    const query = new URLSearchParams(new FormData(form));
    $(".loaded", form).replaceChildren(await get(`${form.getAttribute("action")}?${query}`));
  });

  // -- the next part of a long timeline, when its end comes into view -----------------------------

  const timeline = $("#timeline");

  const more = async (link) => {
    if (link.dataset.state) return;
    link.dataset.state = "loading";
    const holder = link.closest(".more");
    const inside = holder.closest(".timeline") || timeline;
    inside.append(await get(link.dataset.more));
    holder.remove();
    watchMore();
  };

  const seen = new IntersectionObserver((found) => {
    found.filter((each) => each.isIntersecting).forEach((each) => more(each.target));
  }, { rootMargin: "600px" });

  const watchMore = () => $$("a[data-more]").forEach((link) => seen.observe(link));
  watchMore();

  // -- live -----------------------------------------------------------------------------------------

  const place = (html) => {
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 160;
    for (const block of $$(":scope > .block", parse(`<ol>${html}</ol>`).firstElementChild)) {
      const old = document.getElementById(block.id);
      // What a reader has opened stays open.
      if (old) {
        const open = $$("details", old).map((each) => each.open);
        old.replaceWith(block);
        $$("details", block).forEach((each, i) => { if (open[i]) each.open = true; });
      } else {
        timeline.append(block);
      }
    }
    if (atEnd) window.scrollTo({ top: document.body.scrollHeight });
  };

  let refreshing = false;
  const refresh = async () => {
    const status = $("#status");
    if (!status || refreshing || status.contains(document.activeElement)) return;
    refreshing = true;
    await new Promise((done) => setTimeout(done, 250));
    try {
      status.replaceChildren(await get(status.dataset.url));
    } finally {
      refreshing = false;
    }
    for (const graph of $$("details[data-load*='/thread/graph']")) {
      delete graph.dataset.state;
      if (graph.open) load(graph);
    }
  };

  if (timeline && timeline.dataset.events) {
    const source = new EventSource(timeline.dataset.events);
    source.addEventListener("open", () => { document.documentElement.dataset.live = "yes"; });
    source.addEventListener("error", () => { delete document.documentElement.dataset.live; });
    source.addEventListener("blocks", (event) => {
      place(JSON.parse(event.data).html);
      refresh();
    });
    source.addEventListener("gone", () => source.close());
    window.addEventListener("pagehide", () => source.close());
  }

  // -- keys -----------------------------------------------------------------------------------------

  const step = (by) => {
    const blocks = $$("#timeline > .block, tr.block");
    if (!blocks.length) return;
    const now = blocks.findIndex((each) => each.contains(document.activeElement));
    const next = blocks[Math.min(blocks.length - 1, Math.max(0, now + by))];
    ($("a.title", next) || next).focus();
    next.scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "g") location.assign("/");
    else if (event.key === "o" && event.target.matches("li.block")) {
      const details = $("details", event.target);
      if (details) details.open = !details.open;
    } else if (event.key === "/" && $("#search")) $("#search").focus();
    else return;
    event.preventDefault();
  });

  // -- theme ----------------------------------------------------------------------------------------

  const root = document.documentElement;
  const button = $("#theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("locus-theme", root.dataset.theme);
    } catch (error) {
      // It lasts as long as the page then.
    }
    label();
  });
})();
