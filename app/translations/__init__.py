"""The other languages: `<name>.po` has each English sentence of the pages and of the server, and what it is there."""
