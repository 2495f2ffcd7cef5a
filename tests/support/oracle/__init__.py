"""rsync as an oracle: a random scene and a random set of options, run by both programs, must end alike.

scenes        what is at SRC and at DST
options       the options that both programs have, and how one is drawn
intended      where rdc differs by decision, each with the words of docs/explanation/rsync.md
cases         one case: both programs, their plans, their exit codes and what they leave
"""
