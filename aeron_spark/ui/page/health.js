// Servers with their disks, the doctor's findings, and what the servers logged.

import {ask, find, made} from "./base.js";

const LOOK_MS = 15_000;
let looked = null;

function card(one) {
  const good = one.state === "alive";
  const lines = [];
  if (one.trouble) lines.push(made("p", {class: "bad"}, one.trouble));
  if (one.used_share !== null) {
    const fill = made("i", {class: one.is_filling ? "filling" : ""});
    fill.style.width = `${100 * one.used_share}%`;
    lines.push(made("div", {class: "disk", title: "used share of the file system"}, fill),
      made("p", {class: one.is_filling ? "warn" : ""}, `${one.free}B of ${one.total}B are free`
        + (one.kind === "archive" ? (one.is_filling ? `, full in ${one.full_in}` : ", not filling, or not yet known") : "")));
  }
  if (one.in_rate !== "-" || one.out_rate !== "-") {
    const words = one.kind === "archive" ? ["written", "read"] : ["received", "sent"];
    lines.push(made("p", {}, `${one.in_rate}B/s ${words[0]}, ${one.out_rate}B/s ${words[1]}`));
  }
  const about = [`up ${one.up}`, one.pid ? `pid ${one.pid}` : "", `${one.errors} errors`, `${one.stalls} stalls`,
    one.kind === "archive" && one.disk !== "-" ? `${one.disk}B of recordings` : ""].filter(Boolean).join(", ");
  lines.push(made("p", {class: "key"}, about));
  return made("div", {class: "card"},
    made("h3", {}, `${one.kind} ${one.archive_id} `, made("span", {class: good ? "good" : one.state === "ended" ? "warn" : "bad"}, one.state)),
    made("p", {class: "key"}, one.path), ...lines);
}

async function examine() {
  if (looked !== null && Date.now() - looked < LOOK_MS) return;
  looked = Date.now();
  const {findings} = await ask("findings");
  find("examining").hidden = true;
  find("findings").replaceChildren(...findings.map(one => made("li", {},
    made("b", {class: {error: "bad", warn: "warn", ok: "good"}[one.level]}, one.level), ` ${one.about}: ${one.text} `,
    ...(one.remedy ? [made("code", {}, one.remedy)] : []))));
}

export async function refresh(facts) {
  find("servers").replaceChildren(...facts.servers.map(card));
  find("errors").replaceChildren(...facts.errors.map(one => made("li", {},
    made("b", {class: one.new ? "bad" : ""}, `${one.count} times`), ` ${one.message} `,
    made("span", {class: "key"}, `${one.module} ${one.directory}, last ${one.last} UTC`))));
  find("no-errors").hidden = facts.errors.length > 0;
  await examine();
}
