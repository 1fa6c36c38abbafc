"""Documents for people: a run and its verdict as a page, as Markdown, as JSON, as text for the terminal."""
