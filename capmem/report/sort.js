"use strict";
// A click on a head sorts its table by that column: numbers as numbers, the rest as text.
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.cells[head.cellIndex].textContent.trim();
    const order = (a, b) => {
      const [x, y] = [Number.parseFloat(key(a)), Number.parseFloat(key(b))];
      if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
      return (Number.isNaN(x) ? key(a).localeCompare(key(b)) : x - y) * (up ? 1 : -1);
    };
    const rows = [...body.rows].sort(order);
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows);
  });
}
