// The dialog before every change: what will happen, and why it is done.

import { byId, h, show, text } from "./dom.js";
import { Refused } from "./api.js";

const dialog = byId("ask"), form = dialog.querySelector("form");
const remembered = "binlog-outbox.by";
let current = null; // what is asked at the moment

// ask opens the dialog. fields are [{name, label, options: [[value, label]], value}];
// send gets what was filled in, and throws Refused when it was not done. Afterwards
// the focus goes to after, since the button that was pressed may be gone.
export function ask({ title, message, confirm, danger, fields = [], send, after }) {
  current = { send, after };
  text(byId("ask-title"), title);
  text(byId("ask-text"), message);
  text(byId("ask-go"), confirm);
  byId("ask-go").classList.toggle("danger", danger === true);
  byId("ask-fields").replaceChildren(...fields.flatMap((f) => [
    h("label", { for: `ask-${f.name}` }, f.label),
    h("select", { id: `ask-${f.name}`, name: f.name }, ...f.options.map(([value, label]) => h("option", { value, selected: value === f.value }, label))),
  ]));
  form.reset();
  try {
    form.elements.by.value = localStorage.getItem(remembered) ?? "";
  } catch { /* storage may be off */ }
  refuse("");
  busy(false);
  dialog.showModal();
  byId("ask-reason").focus();
}

function refuse(why) {
  text(byId("ask-refused"), why);
  show(byId("ask-refused"), why !== "");
}

function busy(on) {
  byId("ask-go").disabled = on;
  form.setAttribute("aria-busy", String(on));
}

form.addEventListener("submit", async (e) => {
  e.preventDefault();
  const asked = current;
  const filled = Object.fromEntries(new FormData(form));
  if (!filled.by) delete filled.by;
  try {
    if (filled.by) localStorage.setItem(remembered, filled.by);
    else localStorage.removeItem(remembered);
  } catch { /* storage may be off */ }
  refuse("");
  busy(true);
  try {
    await asked.send(filled);
    if (asked === current) {
      dialog.close();
      asked.after?.focus();
    }
  } catch (e) {
    if (!(e instanceof Refused)) throw e;
    if (asked === current) refuse(e.status === 0 ? `${e.message} It may have been done: look before you try again.` : e.message);
  } finally {
    if (asked === current) busy(false);
  }
});

byId("ask-cancel").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => { current = null; });
