"""`rdc watch`: real processes over real inotify."""
