// Claims: shows those of one paper or verdict alone, and opens the one that an address names.
// Without this file all of them are shown.
const claims = [...document.querySelectorAll("details.claim")];

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const claim = named && named.closest("details");
  if (claim) {
    claim.open = true;
    claim.scrollIntoView({ block: "center" });
  }
}

function choice(label, options) {
  const select = document.createElement("select");
  for (const [value, text] of [["", "all"], ...options]) select.add(new Option(text, value));
  const whole = document.createElement("label");
  whole.append(`${label} `, select);
  return [whole, select];
}

const bar = document.getElementById("choose-claims");
if (bar) {
  const papers = new Map(claims.map((one) => [one.dataset.paper, one.dataset.paper]));
  const words = [...document.querySelectorAll("table.matrix th b")].map((sign) => sign.className);
  const [paperLabel, paper] = choice("Paper", papers);
  const verdicts = [...new Set(words)].map((name) => [name, name.replace("-", " ")]);
  const [wordLabel, word] = choice("Verdict", verdicts);
  const count = document.createElement("output");
  const show = () => {
    const has = (part) => !word.value || part.querySelector(`span.${word.value}, td .${word.value}`);
    const of = (claim) => !paper.value || claim.dataset.paper === paper.value;
    for (const claim of claims) claim.hidden = !(has(claim) && of(claim));
    for (const row of document.querySelectorAll("table.matrix tr:has(td)")) row.hidden = !has(row);
    const chosen = Boolean(paper.value || word.value);
    for (const section of document.querySelectorAll("section:has(> .matrix), section:has(> .matrix) section")) {
      section.hidden = chosen && !section.querySelector("details.claim:not([hidden])");
    }
    const shown = document.querySelectorAll(`details.claim:not([hidden]) span[id]${word.value && "." + word.value}`);
    count.textContent = `${shown.length} claims`;
  };
  bar.append(paperLabel, wordLabel, count);
  bar.addEventListener("change", show);
  show();
}
addEventListener("hashchange", openNamed);
openNamed();
