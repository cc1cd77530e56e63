// What is new comes as server-sent events; the parts of the page marked data-live are then fetched and put in place.
import { showTimes } from "./times.js";

const QUIET = 400;
const AGAIN = 3000;
const LATER = 1000;

export function followStream(address) {
  const offline = document.getElementById("offline");
  let source = null;
  let newest = null;
  let waiting = null;
  let asking = false;

  // a stream that was refused, by a proxy or while the database is away, is over for the browser: only a new one goes on
  function connect() {
    const where = new URL(address, location.href);
    if (newest) where.searchParams.set("after", newest);
    source = new EventSource(where);
    const kinds = [...document.body.dataset.kinds.split(" "), "moved", "away"];
    for (const kind of kinds) source.addEventListener(kind, (event) => { newest = event.lastEventId || newest; soon(); });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) soon(AGAIN);
      say("server");
    });
    source.addEventListener("open", () => { if (!offline.hidden) soon(); });
  }

  function say(what) {
    offline.hidden = what === null;
    if (what !== null && offline.textContent !== offline.dataset[what]) offline.textContent = offline.dataset[what];
  }

  async function refresh() {
    waiting = null;
    let answer = null;
    try {
      answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      const fresh = answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
      if (fresh?.getElementById("token")) { source.close(); say("out"); return; }
      if (fresh) {
        replace(fresh);
        say(null);
        if (source.readyState === EventSource.CLOSED) connect();
      }
    } catch {
      answer = null;
    }
    if (!answer?.ok) { say(answer?.status === 503 ? "database" : "server"); soon(AGAIN); }
    if (!asking) askForPast();
  }

  // a long past is read while the page is there already: a word says when it is worth fetching
  async function askForPast() {
    const where = document.querySelector("[data-later]")?.dataset.later;
    asking = where !== undefined;
    if (!asking) return;
    const answer = await fetch(where, { cache: "no-store" }).catch(() => null);
    if (answer?.status === 204) { asking = false; soon(0); } else setTimeout(askForPast, LATER);
  }

  function soon(delay = QUIET) { waiting ??= setTimeout(refresh, delay); }

  connect();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) soon(); });
  askForPast();
}

function replace(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next || isBusy(part)) continue;
    const active = document.activeElement;
    const focus = part.contains(active) && active !== document.body ? address(part, active) : null;
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    const places = [...part.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
    part.querySelectorAll(".scroll").forEach((one, i) => { [one.scrollLeft, one.scrollTop] = places[i] ?? [0, 0]; });
    showTimes(part);
    if (focus) find(part, focus)?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new Event("fresh"));
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
