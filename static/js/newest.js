// Runs while the page is being read, before it is painted: the conversation begins at its newest line, and is never
// seen to jump there. A plain script, since a module would come too late.
(function () {
  var transcript = document.getElementById("transcript");
  if (!transcript.querySelector(".welcome")) transcript.scrollTop = transcript.scrollHeight;
})();
