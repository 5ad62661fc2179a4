// The one script of every page: starts each behaviour; charts are fetched only where there are some.

import * as confirm from "./confirm.js";
import * as copy from "./copy.js";
import * as form from "./form.js";
import * as live from "./live.js";
import * as menu from "./menu.js";
import * as micro from "./micro.js";
import * as table from "./table.js";
import * as theme from "./theme.js";
import * as wall from "./wall.js";

for (const behaviour of [theme, menu, confirm, copy, form, live, micro, table, wall]) {
  behaviour.start();
}
document.addEventListener("fragment", (event) => micro.start(event.target));

if (document.querySelector("[data-chart]")) {
  const charts = await import("./charts.js");
  charts.start();
}
