// Streams: each a lane in which data passes from the publisher to its readers, left to right.

import {Windowed, ask, detail, drawn, find, made, table, tell} from "./base.js";

const HEIGHT = 114;
const ROW = 38;
const STAGES = ["publisher", "sender", "receiver", "subscriber", "recording"];
const SEEN = 2;

const stageOf = role => Math.max(0, STAGES.indexOf(role));

/** Nodes of a lane, with their column and row, and which is fed by which; what has no room is one node. */
function nodesOf(stream) {
  const parties = stream.parties.map((party, number) => ({
    number, after: party.after, stage: stageOf(party.role), name: party.client || `#${party.id}`, full: `${party.name} in ${party.directory}`,
    ...(party.role === "subscriber" || party.role === "receiver" ? {before: "behind ", figure: party.behind} : {figure: `${party.rate}B/s`}),
    isHolder: stream.holder !== "" && party.name === stream.holder,
  }));
  const recordings = stream.recordings.map(key => ({
    after: parties.length ? 0 : null, stage: 4, kind: "recording ", name: key.split(":").at(-1), full: `recording ${key}`, figure: "", isHolder: false,
  }));
  const nodes = [];
  for (let stage = 0; stage < STAGES.length; stage++) {
    const all = [...parties, ...recordings].filter(one => one.stage === stage);
    const hidden = stage === 3 ? stream.more : 0;
    const seen = all.length + hidden > SEEN ? all.slice(0, SEEN - 1) : all;
    seen.forEach((one, row) => nodes.push({...one, row}));
    const left = all.length - seen.length + hidden;
    if (left) nodes.push({after: all[0]?.after ?? 0, stage, row: SEEN - 1, name: `+ ${left} more`, full: "open the stream to see all", figure: "", isMore: true});
  }
  return nodes;
}

function lane(stream) {
  const nodes = nodesOf(stream);
  const at = new Map(nodes.filter(one => one.number !== undefined).map(one => [one.number, one]));
  const wires = nodes.filter(one => at.has(one.after)).map(one => {
    const from = at.get(one.after);
    const [x1, y1, x2, y2] = [from.stage * 20 + 17, from.row * ROW + 17, one.stage * 20, one.row * ROW + 17];
    const bend = x2 - 1.5;
    return drawn("path", {class: one.isHolder ? "held" : "", d: `M${x1} ${y1} L${x1 + 1} ${y1} L${bend} ${y2} L${x2} ${y2}`});
  });
  const boxes = nodes.map(one => {
    const box = made("div", {class: `node${one.isHolder ? " holds" : ""}${one.isMore ? " more" : ""}`, title: one.full},
      made("span", {}, made("span", {class: "roomy"}, one.kind ?? ""), one.name),
      made("span", {class: "small"}, made("span", {class: "roomy"}, one.before ?? ""), one.figure));
    box.style.left = `${one.stage * 20}%`;
    box.style.top = `${one.row * ROW}px`;
    return box;
  });
  const state = stream.holder ? `${stream.flow}: held back by ${stream.holder}` : stream.flow;
  const name = made("button", {type: "button", class: "name"}, `stream ${stream.stream_id}`);
  name.dataset.key = stream.key;
  name.addEventListener("click", () => open(stream.key));
  return made("div", {class: `lane ${stream.flow.replace(" ", "-")}`},
    made("div", {class: "head"}, name,
      made("span", {class: "text"}, `session ${stream.session_id}`),
      made("span", {class: "text", title: stream.channel}, stream.channel),
      made("span", {}, `${stream.rate}B/s`),
      made("span", {class: `state ${stream.flow === "ok" ? "good" : stream.flow === "blocked" ? "bad" : "warn"}`, title: state}, state)),
    made("div", {class: "graph"}, drawn("svg", {viewBox: "0 0 100 74", preserveAspectRatio: "none", "aria-hidden": "true"}, ...wires), ...boxes));
}

async function open(key) {
  const one = await ask("stream", {key}).catch(error => ({error: error.message}));
  if (one.error) return detail("Stream", made("p", {class: "bad"}, one.error));
  const parties = one.parties.map(party => [party.name, `${party.rate}B/s`, party.position, party.behind, party.window,
    party.after === null ? "" : one.parties[party.after]?.name ?? "", party.directory]);
  detail(`Stream ${one.stream_id}, session ${one.session_id}`,
    table(["", ""], [["channel", one.channel], ["directory", one.directory],
      ["state", one.holder ? `${one.flow}: ${one.holder} holds back ${one.held}` : one.flow],
      ["position", one.position], ["rate", `${one.rate}B/s`], ["slowest reader behind", `${one.behind}B`],
      ["NAKs", one.naks], ["back-pressure", one.back_pressure], ["recordings", one.recordings.join(", ") || "none"]]),
    made("h2", {}, "Parties, in the order in which data passes"),
    table(["party", "rate", "position", "behind", "may go on", "gets its data from", "directory"], parties),
    made("p", {class: "empty"}, one.more ? `and ${one.more} more` : ""));
}

const lanes = new Windowed(find("lanes"), HEIGHT,
  part => ask("streams", {...part, filter: find("stream-filter").value, order: find("stream-order").value}),
  lane);

for (const id of ["stream-filter", "stream-order"]) find(id).addEventListener("input", () => lanes.refresh().catch(() => {}));

export async function refresh(facts) {
  await lanes.refresh();
  const told = ["blocked", "slow", "no reader", "ok"].filter(flow => facts.flows[flow]).map(flow => `${facts.flows[flow]} ${flow}`);
  find("flows").textContent =
    [told.join(", "), ...Object.entries(facts.left_out).map(([what, count]) => `${count} ${what} are left out`)].join("; ");
  tell(find("no-streams"), lanes.total ? "" : find("stream-filter").value ? "No stream has this text."
    : "No stream flows in these directories. One appears when a client adds a publication or a subscription gets an image.");
}
