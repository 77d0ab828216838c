// The viewer of messages: a list by position or time, and one message as bytes, SBE tree and row.

import {ask, find, made, send, table, tell} from "./base.js";

let shown = null;
let chosen = null;
let schema = "";
let asked = 0;

const which = () => ({archive: find("archive").value, recording: find("recording").value.trim()});

async function list(query) {
  const number = ++asked;
  tell(find("message-trouble"), "");
  let found;
  try {
    found = await ask("messages", {...which(), ...query});
  } catch (error) {
    if (number === asked) tell(find("message-trouble"), error.message);
    return;
  }
  if (number !== asked) return;
  shown = {...found, ...which()};
  find("range").textContent = `Recording ${found.recording_id} has positions ${found.start_position} to ${found.limit_position}.`;
  tell(find("message-trouble"), [found.error, ...found.doubts].filter(Boolean).join("\n"));
  tell(find("no-messages"), found.rows.length || found.error ? "" : "No message begins at or behind this place.");
  find("earlier").disabled = found.from === found.start_position;
  find("later").disabled = !found.rows.length || found.next === found.limit_position;
  find("list").tBodies[0].replaceChildren(...found.rows.map(row => {
    const button = made("button", {type: "button"}, row.position);
    const line = made("tr", {}, made("td", {}, button), made("td", {}, row.time || "not known"), made("td", {class: "number"}, row.length),
      made("td", {}, row.hex), made("td", {class: "roomy"}, row.preview));
    line.dataset.position = row.position;
    line.addEventListener("click", () => look(row.position));
    return line;
  }));
  if (found.rows.length) await look(found.rows[0].position);
  else {
    chosen = null;
    find("message").hidden = true;
  }
}

async function look(position) {
  chosen = position;
  for (const line of find("list").tBodies[0].rows) line.setAttribute("aria-selected", String(line.dataset.position === position));
  let one;
  try {
    one = await send("message", {archive: shown.archive, recording: shown.recording, position, schema,
      framing: find("framing").value.trim(), skip: find("skip").value.trim() || "0"});
  } catch (error) {
    if (chosen === position) {
      tell(find("one-trouble"), error.message);
      find("message").hidden = true;
    }
    return;
  }
  if (chosen !== position) return;
  tell(find("one-trouble"), "");
  find("message").hidden = false;
  find("hex").textContent = one.hex.map(([at, bytes, text]) => `${at}  ${bytes.padEnd(47)}  ${text}`).join("\n")
    + (one.hex_left_out ? `\n… and ${one.hex_left_out} bytes more` : "");
  find("tree").replaceChildren(one.tree ? nodes(one.tree) : made("p", {class: "empty"}, "Drop in the schema of this message to see its fields."));
  find("row").replaceChildren(...(one.rows.length ? one.rows.map(row => table(["column", "value"], row))
    : [made("p", {class: "empty"}, "By this schema and framing the message has no row.")]));
}

function nodes(all) {
  return made("ul", {}, ...all.map(one => {
    const label = [made("span", {class: "key"}, `${one.name} `), made("span", {class: one.name === "error" ? "value bad" : "value"}, one.text)];
    return made("li", {}, ...(one.nodes ? [made("details", {open: true}, made("summary", {}, ...label), nodes(one.nodes))] : label));
  }));
}

async function take(file) {
  const name = find("schema-name");
  if (file.size > 1 << 20) {
    name.textContent = `${file.name} has more than 1 MiB`;
    return;
  }
  schema = await file.text();
  name.textContent = file.name;
  if (chosen !== null) await look(chosen);
}

const form = find("schema-form");
for (const kind of ["dragover", "dragenter"]) form.addEventListener(kind, event => { event.preventDefault(); form.classList.add("over"); });
form.addEventListener("dragleave", () => form.classList.remove("over"));
form.addEventListener("drop", event => {
  event.preventDefault();
  form.classList.remove("over");
  if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
});
form.addEventListener("submit", event => event.preventDefault());
find("schema-file").addEventListener("change", event => { if (event.target.files.length) take(event.target.files[0]); });
for (const id of ["framing", "skip"]) find(id).addEventListener("change", () => { if (chosen !== null) look(chosen); });

find("jump-by").addEventListener("input", event => {
  find("jump-to").hidden = !["position", "time"].includes(event.target.value);
  find("jump-to").placeholder = event.target.value === "time" ? "2026-01-31T14:30:00" : "65536";
});
find("jump").addEventListener("submit", event => {
  event.preventDefault();
  const by = find("jump-by").value;
  list(by === "first" ? {} : {[by]: by === "last" ? "" : find("jump-to").value.trim()});
});
find("earlier").addEventListener("click", () => list({before: shown.from}));
find("later").addEventListener("click", () => list({position: shown.next}));

/** What is shown is of archives that are not the server's any more. */
function forget() {
  asked++;
  shown = chosen = null;
  find("list").tBodies[0].replaceChildren();
  find("message").hidden = find("earlier").disabled = find("later").disabled = true;
  find("range").textContent = "";
}

/** Name the archives; `query` of the address, where it is new, chooses a recording. */
export function enter(facts, query, isNew) {
  const select = find("archive");
  const named = [...select.options].map(one => one.text);
  if (named.length !== facts.archives.length || facts.archives.some((folder, number) => folder !== named[number])) {
    select.replaceChildren(...facts.archives.map((folder, number) => made("option", {value: String(number)}, folder)));
    forget();
    isNew = true;
  }
  if (!isNew) return;
  if (!facts.archives.length) {
    tell(find("no-messages"), "No archive's folder is named: start with --archive-dir FOLDER.");
    return;
  }
  if (query.has("recording")) {
    select.value = query.get("archive") ?? "0";
    find("recording").value = query.get("recording");
    list({});
  } else if (shown === null) tell(find("no-messages"), "Choose a recording, and Show; or open one under Recordings.");
}
