"""Documents of a run and its verdict: a page, Markdown, JSON, text for the terminal."""
