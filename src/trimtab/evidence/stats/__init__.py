"""PURE: what a figure is worth: order statistics, paired intervals, the A/A floor."""
