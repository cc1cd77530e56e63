// What is new comes as server-sent events; the parts of the page marked data-live are then fetched and put in place.
import { showTimes } from "./times.js";

const QUIET = 400;

export function followStream(address) {
  const offline = document.getElementById("offline");
  const source = new EventSource(address);
  let waiting = null;
  let broken = false;

  async function refresh() {
    waiting = null;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      offline.hidden = true;
    } catch {
      offline.hidden = false;
      waiting ??= setTimeout(refresh, 3000);
    }
    if (document.querySelector("[data-later]")) soon(1500);
  }

  function soon(delay = QUIET) { waiting ??= setTimeout(refresh, delay); }

  const kinds = ["created", "pooled", "asked", "told", "added", "scored", "losses", "failed", "abandoned", "expired",
    "extended", "corrected", "withdrawn", "erased", "skipped", "changed", "frozen", "proving", "weighed", "concluded", "closed"];
  for (const kind of kinds) source.addEventListener(kind, () => soon());
  source.addEventListener("error", () => { broken = true; offline.hidden = source.readyState === EventSource.OPEN; });
  source.addEventListener("open", () => { offline.hidden = true; if (broken) soon(); broken = false; });
  addEventListener("pagehide", () => source.close());
  if (document.querySelector("[data-later]")) soon(600);
}

function replace(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next || isBusy(part)) continue;
    const active = document.activeElement;
    const focus = part.contains(active) && active !== document.body ? address(part, active) : null;
    part.replaceChildren(...next.childNodes);
    showTimes(part);
    if (focus) find(part, focus)?.focus({ preventScroll: true });
  }
}

// a part in which somebody has typed is left alone until they are done
function isBusy(part) {
  return [...part.querySelectorAll("input, textarea")].some((field) => field.type !== "hidden" && field.value !== field.defaultValue);
}

function address(part, element) {
  const alike = [...part.querySelectorAll(element.tagName)];
  return { id: element.id, tag: element.tagName, place: alike.indexOf(element) };
}

function find(part, { id, tag, place }) {
  return (id && part.querySelector(`#${CSS.escape(id)}`)) || part.querySelectorAll(tag)[place];
}
