// Moments in the viewer's own zone; those that matter now also as how long ago, or how long until.
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

function distance(moment) {
  const seconds = (moment - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

// below a chart: the round moments of the viewer's zone, at their own places, instead of those of UTC
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts().find((part) => part.type === "timeZoneName").value;
const SHORT = [
  [60, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }],
  [86400, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }],
  [91 * 86400, { day: "numeric", month: "short" }],
  [Infinity, { month: "short", year: "numeric" }],
].map(([size, parts]) => [size, new Intl.DateTimeFormat(undefined, parts)]);

function east(seconds) { return -60 * new Date(1000 * seconds).getTimezoneOffset(); }

function nameOf(seconds, step) {
  const moment = new Date(1000 * seconds);
  const midnight = step >= 60 && moment.getHours() + moment.getMinutes() === 0;
  return SHORT.find(([size]) => (midnight ? Math.max(step, 86400) : step) < size)[1].format(moment);
}

function showMoments(axis) {
  const [from, to, left, right, step] = ["from", "to", "left", "right", "step"].map((name) => Number(axis.dataset[name]));
  const label = axis.querySelector(".axis");
  const ticks = [...axis.querySelectorAll(".tick")];
  if (!ticks.length || to <= from) return;
  label.textContent = label.textContent.replace("UTC", zone);
  for (let wall = Math.ceil((from + east(from)) / step) * step; ; wall += step) {
    const at = wall - east(wall - east(from));
    if (at > to) break;
    const tick = ticks[0].cloneNode();
    tick.setAttribute("x", (left + ((at - from) / (to - from)) * (right - left)).toFixed(1));
    tick.textContent = nameOf(at, step);
    axis.insertBefore(tick, label);
  }
  for (const tick of ticks) tick.remove();
}

export function showTimes(root) {
  for (const axis of root.querySelectorAll("g.moments")) {
    axis.classList.remove("moments");
    showMoments(axis);
  }
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const kind = element.dataset.time;
    const text = kind === "day" ? day.format(moment)
      : kind === "ago" || kind === "left" ? distance(moment) : minute.format(moment);
    if (element.textContent !== text) element.textContent = text;
    element.title = minute.format(moment);
  }
}
