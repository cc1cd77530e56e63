// What a script adds to pages that work without one: local times, live updates, drag and drop, a quick search.
import { showTimes } from "./times.js";
import { followStream } from "./live.js";

showTimes(document);
setInterval(() => showTimes(document), 20000);

// the answer to a form stands at the form's address, which cannot be opened; the page it shows can
const { page, stream, again } = document.body.dataset;
if (page && new URL(page, location.href).pathname !== location.pathname) history.replaceState(null, "", page);
if (stream) followStream(stream);
if (again !== undefined) setTimeout(() => (again ? location.replace(again) : location.reload()), 4000);

for (const zone of document.querySelectorAll("[data-drop]")) {
  const input = zone.querySelector("input[type=file]");
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}

for (const input of document.querySelectorAll("[data-filter]")) {
  const sift = () => {
    // what the server searched for is not searched once more: it knows more about letters
    const wanted = input.value === input.defaultValue ? "" : input.value.toLowerCase();
    for (const item of document.querySelectorAll(input.dataset.filter)) {
      item.hidden = !item.dataset.name.includes(wanted);
    }
  };
  input.addEventListener("input", sift);
  document.addEventListener("fresh", sift);
}

// a panel that an address names is open
const named = location.hash && document.getElementById(location.hash.slice(1));
if (named instanceof HTMLDetailsElement) named.open = true;

// what was just done is said once: an address that is reloaded or sent on says nothing of it
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  here.searchParams.delete("done");
  history.replaceState(null, "", here);
}
