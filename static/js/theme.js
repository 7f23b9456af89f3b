// Sets the chosen theme, and the presenter's view, before the first paint, and hides an answer that was left in slow
// motion. A plain script in <head>, since a module would come too late and the page would flash. Nothing chosen: the
// system's theme. The switches are theme_switch.js and presenter.js; slow_left.js shows the answer again.
(function () {
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    if (sessionStorage.getItem("presenter") === "true") document.documentElement.dataset.presenter = "";
    if (sessionStorage.getItem("slow_left")) document.documentElement.dataset.slowLeft = "";
  } catch {
    // storage is forbidden here: the system's theme it is
  }
})();
