"""Who makes a trial: this machine, or several under Ray; and the rules by which they may."""
