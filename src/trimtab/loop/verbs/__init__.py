"""What commands do besides running a study: one module for each, or for a few that share their words."""
