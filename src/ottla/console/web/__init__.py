"""What every page needs: who is there, what they may do, templates, charts."""
