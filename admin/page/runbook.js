// The page of the runbooks: one is chosen by the fragment of the address.

import { get } from "./api.js";
import { byId, h } from "./dom.js";
import { address, load, render, title } from "./runbooks.js";

async function choose(names) {
  const name = location.hash.slice(1);
  for (const a of byId("list").querySelectorAll("a")) {
    if (a.dataset.name === name) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  const text = byId("text");
  try {
    if (names.includes(name)) text.replaceChildren(...render(await load(name)));
    else text.replaceChildren(h("h1", {}, "Runbooks"), h("p", {}, "What each alert means, where to look, and what to do."));
  } catch (e) {
    text.replaceChildren(h("h1", {}, title(name)), h("p", { role: "alert" }, e.message));
  }
  document.title = `${names.includes(name) ? title(name) : "Runbooks"} · binlog-outbox`;
}

try {
  const names = await get("ui/runbooks.json");
  byId("list").append(...names.map((n) => h("li", {}, h("a", { href: address(n), "data-name": n }, title(n)))));
  addEventListener("hashchange", () => choose(names));
  await choose(names);
} catch (e) {
  byId("text").append(h("p", { role: "alert" }, e.message));
}
