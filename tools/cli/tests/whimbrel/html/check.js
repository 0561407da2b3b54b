// Looks at a page as it is laid out, and leaves in #verdict what is wrong with it, a line each.
(() => {
  const wrong = window.whimbrelWrong;
  const inside = (inner, outer, slack) =>
    inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
    inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  const own = element => [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim()).map(node => node.data.trim()).join(" ");
  const colour = text => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return parts.length < 3 || parts[3] === 0 ? null : parts.slice(0, 3);
  };
  const light = rgb => rgb.map(it => it / 255).map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)
    .reduce((sum, it, place) => sum + it * [0.2126, 0.7152, 0.0722][place], 0);
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const behind = element => {
    const svg = element.ownerSVGElement;
    if (svg) {
      const box = element.getBoundingClientRect();
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      let found = null;
      for (const shape of svg.querySelectorAll("rect, path.area")) {
        const it = shape.getBoundingClientRect();
        const before = shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
        if (before && x > it.left && x < it.right && y > it.top && y < it.bottom) found = colour(getComputedStyle(shape).fill) || found;
      }
      if (found) return found;
    }
    for (let at = svg || element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found) return found;
    }
    return [255, 255, 255];
  };

  if (innerWidth !== EXPECTED_WIDTH) wrong.push(`it is ${innerWidth} wide`);
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide, and the window ${innerWidth}`);
  for (const entry of performance.getEntriesByType("resource")) wrong.push(`request: ${entry.name}`);
  let texts = 0;
  for (const element of document.querySelectorAll("body *:not(script):not(style)")) {
    const text = own(element), box = element.getBoundingClientRect();
    if (!text || box.width === 0) continue;
    texts += 1;
    const style = getComputedStyle(element);
    const ratio = contrast(colour(element.ownerSVGElement ? style.fill : style.color), behind(element));
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)}: ${text}`);
    if (box.left < -0.5 || box.right > innerWidth + 0.5) wrong.push(`beyond the window: ${text}`);
    const clip = style.overflowX !== "visible" && style.display !== "inline";
    if (clip && element.scrollWidth > element.clientWidth + 1) wrong.push(`cut off: ${text}`);
  }
  // What no sheet has room for is cut where one ends; what is made of such parts is broken between them.
  const whole = [...document.querySelectorAll("body *")].filter(it => getComputedStyle(it).breakInside === "avoid");
  for (const element of whole.filter(it => !whole.some(other => other !== it && it.contains(other)))) {
    const { height } = element.getBoundingClientRect();
    if (height > EXPECTED_SHEET) wrong.push(`higher than a sheet, ${height.toFixed(0)}: ${element.textContent.trim().slice(0, 60)}`);
  }
  if (texts < 20) wrong.push(`only ${texts} texts`);
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    const all = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    all.forEach(([text, box], place) => {
      if (!inside(box, frame, 0.5)) wrong.push(`outside its drawing: ${text} in ${svg.getAttribute("aria-label")}`);
      for (const [other, beside] of all.slice(place + 1)) {
        const wide = Math.min(box.right, beside.right) - Math.max(box.left, beside.left);
        const high = Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top);
        if (wide > 1 && high > 4) wrong.push(`over each other: ${text} and ${other} in ${svg.getAttribute("aria-label")}`);
      }
    });
  }
  const verdict = document.createElement("pre");
  verdict.id = "verdict";
  verdict.textContent = wrong.length ? [...new Set(wrong)].slice(0, 40).join("\n") : `nothing wrong with ${texts} texts`;
  document.body.append(verdict);
})();
