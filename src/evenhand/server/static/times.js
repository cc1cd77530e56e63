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

export function showTimes(root) {
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
