// Sets the chosen theme before the first paint. A plain script in <head>, since a module would come too
// late and the page would flash. Nothing chosen: the system's. The switch is theme_switch.js.
(function () {
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // storage is forbidden here: the system's theme it is
  }
})();
