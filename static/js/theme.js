// Sets the chosen theme, and the presenter's view, before the first paint. A plain script in <head>, since a
// module would come too late and the page would flash. Nothing chosen: the system's theme. The switches are
// theme_switch.js and presenter.js.
(function () {
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    if (sessionStorage.getItem("presenter") === "true") document.documentElement.dataset.presenter = "";
  } catch {
    // storage is forbidden here: the system's theme it is
  }
})();
