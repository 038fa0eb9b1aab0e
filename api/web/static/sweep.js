// Steps that were worked out, one at a time under a slider that stops at them. Without scripts they are a list.
(() => {
  "use strict";

  const build = (box) => {
    const slider = box.querySelector("input[type=range]");
    const steps = [...box.querySelectorAll("ol > li")];
    const show = () => {
      steps.forEach((step, number) => (step.hidden = number !== Number(slider.value)));
      slider.setAttribute("aria-valuetext", steps[slider.value].textContent);
    };
    slider.addEventListener("input", show);
    slider.hidden = false;
    box.classList.add("ready");
    show();
  };
  document.querySelectorAll(".sweep").forEach(build);
})();
