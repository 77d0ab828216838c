// Recordings: each with its span of time on one common axis; opened, with its segments and its rate over time.

import {Windowed, ask, detail, drawn, find, made, table, tell} from "./base.js";

const HEIGHT = 70;

const COLOURS = {active: "good", stopped: ""};

function span(one, isActive) {
  return `${one.start} to ${isActive ? "now" : one.stop === "-" ? "an unknown end" : one.stop}`;
}

function tape(one, all) {
  const width = Math.max(1, all.to_ms - all.from_ms);
  const isActive = one.state === "active";
  const bar = made("i", {class: one.state, title: span(one, isActive)});
  if (one.start_ms !== null) {
    const end = one.stop_ms ?? (isActive ? all.time_ms : one.start_ms);
    bar.style.left = `${100 * (one.start_ms - all.from_ms) / width}%`;
    bar.style.width = `${Math.max(0, 100 * (end - one.start_ms) / width)}%`;
    bar.style.maxWidth = `${100 - 100 * (one.start_ms - all.from_ms) / width}%`;
  } else bar.hidden = true;
  const name = made("button", {type: "button", class: "name"}, `recording ${one.recording_id}`);
  name.dataset.key = one.key;
  name.addEventListener("click", () => open(one));
  const figures = isActive ? `active, ${one.length}B, ${one.rate}B/s` : `${one.state}, ${one.length}B`;
  return made("div", {class: "tape"},
    made("div", {class: "head"}, name,
      made("span", {class: "text"}, `stream ${one.stream_id}`),
      made("span", {class: "text", title: one.channel}, one.channel),
      made("span", {class: "text roomy"}, `${span(one, isActive)} UTC`),
      made("span", {class: `state ${COLOURS[one.state] ?? "bad"}`}, figures)),
    made("div", {class: "track"}, bar));
}

function chart(rates) {
  const [from, to] = [rates[0].from_ms, rates.at(-1).to_ms];
  const most = Math.max(...rates.map(one => one.rate));
  return drawn("svg", {class: "chart", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": "rate over time"},
    ...rates.map(one => drawn("rect", {
      x: 1000 * (one.from_ms - from) / (to - from), width: Math.max(1, 1000 * (one.to_ms - one.from_ms) / (to - from)),
      y: 100 - 95 * one.rate / most, height: 95 * one.rate / most,
    }, drawn("title", {}, one.text))));
}

async function open(row) {
  const title = `Recording ${row.recording_id}`;
  if (row.archive === null) {
    return detail(title, made("p", {}, `Its archive's folder is not named here: add --archive-dir FOLDER to see its segments and messages. ${row.folder}`));
  }
  const one = await ask("recording", {archive: row.archive, recording: row.recording_id}).catch(error => ({error: error.message}));
  if (one.error) return detail(title, made("p", {class: "bad"}, one.error));
  const look = made("a", {href: `#messages?archive=${row.archive}&recording=${row.recording_id}`}, "Look at its messages");
  look.addEventListener("click", () => find("detail").close());
  const lost = one.segments.filter(segment => !segment.is_there).length;
  detail(title,
    made("p", {}, look),
    table(["", ""], [["folder", one.folder], ["stream, session", `${one.stream_id}, ${one.session_id}`], ["channel", one.channel],
      ["source", one.source], ["recorded", `${span(one, one.is_active)} UTC`],
      ["positions", `${one.start_position} to ${one.limit_position}`], ["length", `${one.length}B`],
      ["segments", `${one.segment_count} of ${one.segment_length}B, terms of ${one.term_length}B`]]),
    made("h2", {}, "Rate over time"),
    one.rates.length ? chart(one.rates) : made("p", {class: "empty"},
      "The time index does not tell: too little is recorded, or it is of a stock archive. aeron-spark archive index rebuild FOLDER makes one."),
    made("p", {class: "key"}, one.rates.length ? `${one.rates[0].text}; at most ${one.rates.reduce((a, b) => a.rate >= b.rate ? a : b).text}` : ""),
    made("h2", {}, "Segments"),
    made("p", {class: lost ? "bad" : ""}, lost ? `${lost} of these segments are missing: their bytes cannot be read` : ""),
    table(["file", "from", "to", "length", "on disk"],
      one.segments.map(segment => [segment.name, segment.begin, segment.end, segment.is_there ? `${segment.size}B` : "missing", segment.is_there ? `${segment.disk}B` : ""])),
    made("p", {class: "key"}, one.segment_count > one.segments.length ? `and ${one.segment_count - one.segments.length} older ones` : ""));
}

let spanned = "";
const tapes = new Windowed(find("tapes"), HEIGHT, async part => {
  const found = await ask("recordings", {...part, filter: find("recording-filter").value, order: find("recording-order").value});
  const seconds = (found.to_ms - found.from_ms) / 1000;
  const [unit, of] = seconds >= 172_800 ? ["days", 86_400] : seconds >= 7200 ? ["hours", 3600] : seconds >= 120 ? ["minutes", 60] : ["seconds", 1];
  spanned = found.total ? `the axis spans ${(seconds / of).toFixed(1)} ${unit}` : "";
  return found;
}, tape);

for (const id of ["recording-filter", "recording-order"]) find(id).addEventListener("input", () => tapes.refresh().catch(() => {}));

export async function refresh(facts) {
  await tapes.refresh();
  find("spanned").textContent = spanned;
  tell(find("no-recordings"), tapes.total ? "" : find("recording-filter").value ? "No recording has this text."
    : facts.archives.length ? "There is no recording yet. aeron-spark archive start records a stream."
      : "No archive's folder is named: start with --archive-dir FOLDER.");
}
