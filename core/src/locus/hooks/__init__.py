"""The seam: what plugins and users hook into, and how that is found, checked, ordered and called."""
