"""What collectors and scenarios both need; it imports nothing else of ours."""
