(() => {
  // For browsers without ::details-content.
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details.glossary")) details.open = true;
  });
  const note = document.createElement("div");
  note.id = "hover";
  document.body.append(note);
  const hide = () => { note.style.display = "none"; };
  for (const line of document.querySelectorAll("svg path.line[data-step]")) {
    const svg = line.ownerSVGElement;
    const step = Number(line.dataset.step);
    const [, low, high, from, to] = line.dataset.scale.split(" ").map(Number);
    const places = [...line.getAttribute("d").matchAll(/V([\d.]+)H([\d.]+)/g)].map(m => [Number(m[1]), Number(m[2])]);
    svg.addEventListener("mousemove", event => {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = (event.clientX - box.left) * view.width / box.width;
      const y = (event.clientY - box.top) * view.height / box.height;
      if (y > from + 6 || y < to - 20) return;
      const place = places.findIndex(it => x < it[1]);
      if (place < 0) { hide(); return; }
      const value = low + (places[place][0] - from) / (to - from) * (high - low);
      note.textContent = `${(place * step).toLocaleString("en")} s: about ${Number(value.toPrecision(3)).toLocaleString("en")}`;
      note.style.display = "block";
      note.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - note.offsetWidth - 8)) + "px";
      note.style.top = (event.clientY + 14) + "px";
    });
    svg.addEventListener("mouseleave", hide);
  }
})();
