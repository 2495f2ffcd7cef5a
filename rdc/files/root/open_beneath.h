/* open_beneath.h - opens what lies below a directory, following no link on the way. */
#ifndef RDC_OPEN_BENEATH_H
#define RDC_OPEN_BENEATH_H

/*
 * Opens `path`, relative, single names joined by single slashes, below the directory open (also with O_PATH) at
 * `directory`. `flags` are those of open(2), O_NOFOLLOW and O_CLOEXEC among them. Returns a descriptor, or -1 with
 * errno: ELOOP or ENOTDIR at a link, EINVAL for a path of another form.
 */
int rdc_open_beneath(int directory, const char *path, int flags);

/* Whether `path` has that form: what rdc/files/base/paths.py checks, its whole length apart. */
int rdc_is_plain_path(const char *path);

#endif
