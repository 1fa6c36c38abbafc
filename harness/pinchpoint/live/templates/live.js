"use strict";
const events = new EventSource("/events");
const show = (id) => (event) => {
  document.body.classList.remove("lost");
  document.getElementById(id).innerHTML = JSON.parse(event.data);
};
events.addEventListener("state", show("state"));
events.addEventListener("charts", show("charts"));
events.addEventListener("ended", () => {
  events.close();
  document.getElementById("phase").textContent = "The run has ended";
  document.getElementById("note")?.remove();
  document.title = "Pinchpoint: the run has ended";
});
events.onerror = () => document.body.classList.add("lost");
