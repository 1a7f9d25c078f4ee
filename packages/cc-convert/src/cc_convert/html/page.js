document.documentElement.classList.add("scripted");
document.querySelectorAll("input[data-in]").forEach(box => {
  const place = document.getElementById(box.dataset.in);
  const entries = [...place.querySelectorAll("[data-entry]")];
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const wanted = box.value.toLowerCase();
      entries.forEach(entry => {
        const found = !wanted || entry.textContent.toLowerCase().includes(wanted);
        entry.classList.toggle("gone", !found);
        if (wanted && found && entry.firstElementChild && entry.firstElementChild.tagName === "DETAILS")
          entry.firstElementChild.open = true;
      });
    }, 150);
  });
});
