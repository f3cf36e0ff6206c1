"""What travels: a report's answers as one page or one Markdown text, with pictures and links."""
