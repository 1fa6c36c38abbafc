"""Code that collectors and scenarios both need; it imports no other package of Pinchpoint."""
