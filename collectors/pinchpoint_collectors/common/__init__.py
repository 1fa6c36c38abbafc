"""Code that both collectors and scenarios need. It imports no other package of Pinchpoint."""
