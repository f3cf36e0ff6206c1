// Keys go to the app as soon as it draws, and not to the page; before that nobody would take them.
const ready = () => document.body.classList.contains("-first-byte");
const focus = () => ready() && document.querySelector(".xterm-helper-textarea").focus();
new MutationObserver(focus).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", focus);
