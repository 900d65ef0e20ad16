"use strict";
(() => {
  const show = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", show);
  show();
  const words = document.getElementById("filter");
  const notGreen = document.getElementById("notgreen");
  const rows = [...document.querySelectorAll(".matrix tr[data-name]")];
  const parts = [...document.querySelectorAll("details.algorithm")];
  let names = null;
  const told = document.getElementById("shown");
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    names ??= parts.map((part) => [part.dataset.name, ...[...part.querySelectorAll("tbody[id] th")].map((th) => th.textContent)]
      .join(" ").toLowerCase());
    rows.forEach((row, number) => {
      const fits = wanted.every((word) => names[number].includes(word)) && !(notGreen.checked && "green" in row.dataset);
      row.hidden = parts[number].hidden = !fits;
      count += fits;
    });
    document.querySelectorAll(".matrix tbody").forEach((body) => {
      body.querySelector(".group").hidden = !body.querySelector("tr[data-name]:not([hidden])");
    });
    told.textContent = `${count} of ${rows.length} algorithms`;
  };
  document.querySelector(".filter").hidden = false;
  words.addEventListener("input", apply);
  notGreen.addEventListener("change", apply);
})();
