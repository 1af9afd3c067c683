(function () {
  var detail = document.getElementById("detail");
  function show(event) {
    var spot = event.target.closest(".spot");
    if (spot) { detail.textContent = spot.getAttribute("data-detail"); }
  }
  document.addEventListener("mouseover", show);
  document.addEventListener("focusin", show);
})();
