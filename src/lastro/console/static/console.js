// What a page does by itself: it hears that its account changed and fetches its marked parts anew.
// Everything else works without this file.
"use strict";
(() => {
  const body = document.body;

  // A form is sent once; the server would act once in any case.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-once]")) return;
    if (form.getAttribute("aria-busy") === "true") { event.preventDefault(); return; }
    form.setAttribute("aria-busy", "true");
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("form[aria-busy]").forEach((form) => form.removeAttribute("aria-busy"));
  });

  const showCopyButtons = (root) => {
    root.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = !navigator.clipboard; });
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    const words = button.textContent;
    button.textContent = button.dataset.done;
    announce(button.dataset.done);
    setTimeout(() => { button.textContent = words; }, 1500);
  });
  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  const announce = (words) => {
    const place = document.getElementById("announce");
    if (place) place.textContent = words;
  };

  // A part as it looks; keys of its forms are new each time and do not count.
  const face = (part) => {
    const copy = part.cloneNode(true);
    copy.querySelectorAll("input[name=key]").forEach((input) => input.remove());
    copy.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = true; });
    copy.querySelectorAll("details").forEach((details) => details.removeAttribute("open"));
    return copy.innerHTML;
  };
  const faces = new Map();
  const parts = () => document.querySelectorAll("[data-part]");
  const isBusy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button")
    || part.querySelector("details[open], form[aria-busy=true]") !== null;

  let asking = false;
  let askAgain = false;
  let timer = 0;
  let late = false;

  const take = (fresh) => {
    late = false;
    parts().forEach((part) => {
      const twin = fresh.getElementById(part.id);
      if (!twin) return;
      if (twin.dataset.every) part.dataset.every = twin.dataset.every; else delete part.dataset.every;
      const looks = face(twin);
      if (looks === faces.get(part.id)) return;
      if (isBusy(part)) { late = true; return; }
      faces.set(part.id, looks);
      part.replaceChildren(...document.importNode(twin, true).childNodes);
      part.classList.remove("fresh");
      void part.offsetWidth;
      part.classList.add("fresh");
      showCopyButtons(part);
      part.querySelectorAll("[data-announce]").forEach((said) => announce(`${said.dataset.announce}: ${said.textContent.trim()}`));
    });
  };

  const refresh = async () => {
    if (asking) { askAgain = true; return; }
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (fresh.body.dataset.version) body.dataset.version = fresh.body.dataset.version;
        take(fresh);
      }
    } catch { /* the service is away; the stream comes back by itself */ } finally {
      asking = false;
      plan();
    }
    if (askAgain) { askAgain = false; refresh(); }
  };

  // Parts that wait for something no event tells of ask for themselves, as long as the page is seen.
  const plan = () => {
    clearTimeout(timer);
    const waits = [...parts()].map((part) => Number(part.dataset.every)).filter(Boolean);
    if (late) waits.push(3000);
    if (waits.length) timer = setTimeout(() => (document.hidden ? plan() : refresh()), Math.min(...waits));
  };

  const listen = () => {
    const stream = new EventSource(body.dataset.live);
    stream.addEventListener("version", (event) => {
      if (event.data !== body.dataset.version) refresh();
    });
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 15000);
    });
    window.addEventListener("pagehide", () => stream.close(), { once: true });
  };

  showCopyButtons(document);
  document.querySelector(".side [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  if (body.dataset.live) {
    parts().forEach((part) => faces.set(part.id, face(part)));
    listen();
    plan();
  }
})();
