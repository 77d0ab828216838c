// The page: chooses the view by the address, and asks the server once a second for what it shows.

import {AnswerError, TokenError, ask, find, tell} from "./base.js";
import * as health from "./health.js";
import * as messages from "./messages.js";
import * as recordings from "./recordings.js";
import * as streams from "./streams.js";

const EVERY_MS = 1000;
const VIEWS = {streams, recordings, messages, health};
let facts = null;
let entered = null;
let isPaused = false;

function view() {
  const [name, query] = location.hash.slice(1).split("?");
  return {name: name in VIEWS ? name : "streams", query: new URLSearchParams(query ?? "")};
}

function choose() {
  const {name} = view();
  for (const one of Object.keys(VIEWS)) find(one).hidden = one !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function count() {
  const blocked = facts.flows.blocked;
  const sick = facts.servers.filter(one => ["dead", "unreadable"].includes(one.state)).length;
  find("time").textContent = `${facts.time} UTC`;
  find("count-streams").textContent = blocked ? `${blocked} blocked of ${facts.streams}` : String(facts.streams);
  find("count-streams").className = blocked ? "alarm" : "";
  find("count-recordings").textContent = String(facts.recordings);
  find("count-health").textContent = sick ? `${sick} down` : "";
  find("count-health").className = sick ? "alarm" : "";
}

async function look() {
  const {name, query} = view();
  const {hash} = location; // another one may be there when the answers have come
  facts = await ask("overview");
  count();
  if (name === "messages") messages.enter(facts, query, entered !== hash);
  else await VIEWS[name].refresh(facts);
  entered = hash;
}

function failed(error) {
  if (error instanceof TokenError) {
    find("ask-token").hidden = false;
    find("trouble").hidden = true;
  } else if (error instanceof AnswerError) tell(find("trouble"), error.message);
  else tell(find("trouble"), `aeron-spark ui does not answer${facts ? `; what you see is of ${facts.time} UTC` : ""}. Start it again, and this page goes on.`);
}

let isLooking = false;
async function again() {
  if (isLooking) return;
  isLooking = true;
  try {
    await look();
    find("ask-token").hidden = true;
    tell(find("trouble"), facts.servers.filter(one => one.trouble).map(one => one.trouble).join("\n"));
  } catch (error) {
    failed(error);
  } finally {
    isLooking = false;
    document.body.dataset.looked = String(Number(document.body.dataset.looked ?? 0) + 1);
  }
}

addEventListener("hashchange", () => { choose(); scrollTo(0, 0); again(); });
find("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  find("pause").setAttribute("aria-pressed", String(isPaused));
  find("pause").textContent = isPaused ? "Paused" : "Pause";
});
for (const form of document.querySelectorAll("form.tools")) form.addEventListener("submit", event => event.preventDefault());
find("ask-token").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("token", find("token").value.trim());
  again();
});
setInterval(() => { if (!isPaused && !document.hidden && find("ask-token").hidden) again(); }, EVERY_MS);
choose();
again();
