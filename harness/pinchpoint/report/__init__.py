"""What people read: a run and its verdict as a page, as Markdown, as JSON, as sentences for the terminal."""
