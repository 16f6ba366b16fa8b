"""What links say of pages: hubs, authorities, and what a page is worth."""
